//! placeholder
pub mod area {
    //! placeholder
    /// placeholder
    #[derive(Clone)]
    pub struct Area;
    /// placeholder
    pub struct HandoverReader;
    impl hamlyn_engine::memory::Area for Area {
        fn length_bytes(&self) -> u64 { 0 }
        fn write(&self, _: u64, _: &[u8]) -> Result<(), hamlyn_engine::memory::Denied> { Ok(()) }
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), hamlyn_engine::memory::Denied> { Ok(()) }
    }
}
