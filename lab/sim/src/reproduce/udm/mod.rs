//! *Exploiting Two-Case Delivery for Fast Protected Messaging*: Tables 4 to 6 and Figures 7 to 10,
//! by programs of the layer of User Direct Messaging (`layers/udm`) on the paper's machine.

pub mod fugu;

#[cfg(test)]
mod tests;
