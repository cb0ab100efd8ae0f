//! The data structures that the workloads share, living entirely in simulated PM.
//!
//! A structure is a small `Copy` handle of addresses and sizes: all its state is in memory, behind
//! [`Memory`](graven_machine::program::Memory). The same code therefore populates an image
//! ([`Direct`](graven_machine::program::Direct)), runs as a timed thread
//! ([`Thread`](graven_machine::program::Thread)), and is walked by checks that read the image. Checks bound
//! every walk by the memory that was allocated, so that they end on any bytes whatever.

pub mod allocator;
pub mod btree;
pub mod buckets;
pub mod chain_queue;
pub mod chains;
pub mod ctree;
pub mod element;
pub mod fifo;
pub mod graph;
pub mod hash;
pub mod index;
pub mod keyed;
pub mod keys;
pub mod multigraph;
pub mod queue;
pub mod radix_tree;
pub mod rbtree;
pub mod table;
pub mod text_index;
pub mod versions;

pub use allocator::{Arena, Census, ensure};
pub use btree::BTree;
pub use buckets::Buckets;
pub use chain_queue::ChainQueue;
pub use chains::Chains;
pub use ctree::CritBitTree;
pub use element::Element;
pub use fifo::Fifo;
pub use graph::{Edge, Graph};
pub use hash::Hash;
pub use index::Index;
pub use keyed::Keyed;
pub use keys::Keys;
pub use multigraph::Multigraph;
pub use queue::Queue;
pub use radix_tree::RadixTree;
pub use rbtree::RbTree;
pub use table::Table;
pub use text_index::TextIndex;
pub use versions::Versions;
