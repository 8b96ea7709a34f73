//! Types of C, and the three that Split-C adds: global pointers, spread pointers and spread arrays
//! (Split-C 2.2).
//!
//! The front end needs types to find each access through a global address, and to name the type of
//! what is accessed. It never computes a size: sizes and offsets are left to the C compiler, as
//! text.

use crate::syntax::tree::Expr;
use std::rc::Rc;

/// A shared type.
pub type Ty = Rc<Type>;

/// A type with its qualifiers.
#[derive(Debug, Clone)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// `const`.
    pub is_const: bool,
    /// `volatile`.
    pub is_volatile: bool,
}

/// How far a pointer reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// An address of this processor.
    Local,
    /// `*global`: an address of any processor; arithmetic stays on the processor.
    Global,
    /// `*spread`: arithmetic steps from processor to processor.
    Spread,
}

/// The number of elements of one dimension.
#[derive(Debug, Clone)]
pub enum Dimension {
    /// `[]`.
    Open,
    /// An expression, evaluated where it is needed.
    Expression(Rc<Expr>),
    /// The expression was evaluated into this constant variable.
    Captured(Rc<str>),
}

/// Integer types by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// `char`; the flag of signedness says whether it is `signed char`.
    Char,
    /// `short`.
    Short,
    /// `int`.
    Int,
    /// `long`.
    Long,
    /// `long long`.
    LongLong,
    /// `__int128`.
    Int128,
}

/// Names of a structure, union or enumeration.
pub type TagNumber = usize;

/// What a type is.
#[derive(Debug, Clone)]
pub enum Kind {
    /// `void`.
    Void,
    /// `_Bool`.
    Bool,
    /// An integer; for `char`, `explicit` says that `signed` was written.
    Integer {
        /// Its rank.
        rank: Rank,
        /// Whether it is unsigned.
        unsigned: bool,
        /// `signed` was written.
        explicit: bool,
    },
    /// `float`, `double`, `long double`, `_Float128`, complex ones: by spelling, with a rank.
    Floating(&'static str, u8),
    /// An enumeration.
    Enumeration(TagNumber),
    /// A structure or union.
    Record(TagNumber),
    /// A pointer.
    Pointer(Ty, Reach),
    /// An array in one memory.
    Array(Ty, Dimension),
    /// A spread array: elements, and the dimensions left of `::`.
    SpreadArray(Ty, Rc<[Dimension]>),
    /// A function: result, parameters if a prototype tells, whether more may follow.
    Function(Ty, Option<Rc<[Ty]>>, bool),
    /// A type that only the C compiler knows, by its name.
    Named(Rc<str>),
    /// Unknown: left to the C compiler.
    Unknown,
}

/// A field of a structure or union.
#[derive(Debug, Clone)]
pub struct Field {
    /// `None`: the fields of an unnamed structure inside.
    pub name: Option<Rc<str>>,
    /// Its type.
    pub ty: Ty,
    /// Whether it is a bit-field.
    pub is_bit_field: bool,
}

/// A structure, union or enumeration.
#[derive(Debug, Clone)]
pub struct Tag {
    /// `struct`, `union` or `enum`.
    pub word: &'static str,
    /// Its name, made up if there was none.
    pub name: Rc<str>,
    /// Its fields, once they are known.
    pub fields: Option<Rc<[Field]>>,
    /// Whether its definition is outside of functions.
    pub at_file_scope: bool,
}

impl Type {
    /// An unqualified type.
    pub fn new(kind: Kind) -> Ty {
        Rc::new(Type {
            kind,
            is_const: false,
            is_volatile: false,
        })
    }

    /// `int`.
    pub fn int() -> Ty {
        Self::integer(Rank::Int, false)
    }

    /// An integer type.
    pub fn integer(rank: Rank, unsigned: bool) -> Ty {
        Self::new(Kind::Integer {
            rank,
            unsigned,
            explicit: false,
        })
    }

    /// `double`.
    pub fn double() -> Ty {
        Self::new(Kind::Floating("double", 2))
    }

    /// An unknown type.
    pub fn unknown() -> Ty {
        Self::new(Kind::Unknown)
    }

    /// A pointer to `to`.
    pub fn pointer(to: Ty, reach: Reach) -> Ty {
        Self::new(Kind::Pointer(to, reach))
    }

    /// The same type without qualifiers.
    pub fn unqualified(ty: &Ty) -> Ty {
        if ty.is_const || ty.is_volatile {
            Self::new(ty.kind.clone())
        } else {
            ty.clone()
        }
    }

    /// The same type with qualifiers added.
    pub fn qualified(ty: &Ty, is_const: bool, is_volatile: bool) -> Ty {
        if (is_const && !ty.is_const) || (is_volatile && !ty.is_volatile) {
            Rc::new(Type {
                kind: ty.kind.clone(),
                is_const: ty.is_const || is_const,
                is_volatile: ty.is_volatile || is_volatile,
            })
        } else {
            ty.clone()
        }
    }

    /// Whether this is a global or a spread pointer.
    pub fn is_global_pointer(&self) -> bool {
        matches!(self.kind, Kind::Pointer(_, Reach::Global | Reach::Spread))
    }

    /// Whether this is a spread pointer.
    pub fn is_spread_pointer(&self) -> bool {
        matches!(self.kind, Kind::Pointer(_, Reach::Spread))
    }

    /// Whether a global pointer or a spread array is a part of it, as far as it is written out.
    pub fn reaches_others(&self) -> bool {
        match &self.kind {
            Kind::Pointer(to, _) => self.is_global_pointer() || to.reaches_others(),
            Kind::Array(of, _) => of.reaches_others(),
            Kind::Function(result, parameters, _) => {
                let parameters = parameters.as_deref().unwrap_or_default();
                result.reaches_others() || parameters.iter().any(|ty| ty.reaches_others())
            }
            Kind::SpreadArray(..) => true,
            _ => false,
        }
    }

    /// What a pointer of any reach points to, with its reach.
    pub fn pointee(&self) -> Option<(&Ty, Reach)> {
        match &self.kind {
            Kind::Pointer(to, reach) => Some((to, *reach)),
            _ => None,
        }
    }

    /// Whether it is unknown to the front end.
    pub fn is_unknown(&self) -> bool {
        matches!(self.kind, Kind::Unknown)
    }

    /// Whether it is `void`.
    pub fn is_void(&self) -> bool {
        matches!(self.kind, Kind::Void)
    }

    /// Whether it is an integer type, `_Bool` or an enumeration.
    pub fn is_integer(&self) -> bool {
        matches!(
            self.kind,
            Kind::Bool | Kind::Integer { .. } | Kind::Enumeration(_)
        )
    }

    /// Whether it is a floating type.
    pub fn is_floating(&self) -> bool {
        matches!(self.kind, Kind::Floating(..))
    }

    /// Whether it is an integer or a floating type.
    pub fn is_arithmetic(&self) -> bool {
        self.is_integer() || self.is_floating()
    }

    /// Whether it is a function.
    pub fn is_function(&self) -> bool {
        matches!(self.kind, Kind::Function(..))
    }
}

/// The type of an operand after the integer promotions.
pub fn promoted(ty: &Ty) -> Ty {
    match &ty.kind {
        Kind::Bool | Kind::Enumeration(_) => Type::int(),
        Kind::Integer { rank, .. } if *rank < Rank::Int => Type::int(),
        _ => Type::unqualified(ty),
    }
}

/// The type of `left op right` after the usual arithmetic conversions.
pub fn common(left: &Ty, right: &Ty) -> Ty {
    let (left, right) = (promoted(left), promoted(right));
    match (&left.kind, &right.kind) {
        (Kind::Floating(_, a), Kind::Floating(_, b)) => {
            if a >= b {
                left
            } else {
                right
            }
        }
        (Kind::Floating(..), _) if right.is_integer() => left,
        (_, Kind::Floating(..)) if left.is_integer() => right,
        (
            Kind::Integer {
                rank: a,
                unsigned: u,
                ..
            },
            Kind::Integer {
                rank: b,
                unsigned: v,
                ..
            },
        ) => {
            let rank = *a.max(b);
            let unsigned = (*u && *a == rank) || (*v && *b == rank);
            Type::integer(rank, unsigned)
        }
        _ => Type::unknown(),
    }
}

/// Whether two types are the same as far as a pointer to one may stand for a pointer to the other
/// without a word. Unknown types are the same as all.
pub fn same(left: &Ty, right: &Ty) -> bool {
    match (&left.kind, &right.kind) {
        (Kind::Unknown, _) | (_, Kind::Unknown) => true,
        (Kind::Void, Kind::Void) | (Kind::Bool, Kind::Bool) => true,
        (
            Kind::Integer {
                rank: a,
                unsigned: u,
                explicit: e,
            },
            Kind::Integer {
                rank: b,
                unsigned: v,
                explicit: f,
            },
        ) => a == b && u == v && (*a != Rank::Char || e == f),
        (Kind::Floating(a, _), Kind::Floating(b, _)) => a == b,
        (Kind::Enumeration(a), Kind::Enumeration(b)) | (Kind::Record(a), Kind::Record(b)) => a == b,
        (
            Kind::Enumeration(_),
            Kind::Integer {
                rank: Rank::Int, ..
            },
        )
        | (
            Kind::Integer {
                rank: Rank::Int, ..
            },
            Kind::Enumeration(_),
        ) => true,
        (Kind::Pointer(a, r), Kind::Pointer(b, s)) => r == s && same(a, b),
        (Kind::Array(a, _), Kind::Array(b, _)) => same(a, b),
        (Kind::SpreadArray(a, d), Kind::SpreadArray(b, e)) => d.len() == e.len() && same(a, b),
        (Kind::Function(a, p, _), Kind::Function(b, q, _)) => {
            same(a, b)
                && match (p, q) {
                    (Some(p), Some(q)) => {
                        p.len() == q.len() && p.iter().zip(q.iter()).all(|(a, b)| same(a, b))
                    }
                    _ => true,
                }
        }
        (Kind::Named(a), Kind::Named(b)) => a == b,
        _ => false,
    }
}
