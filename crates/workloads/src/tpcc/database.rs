//! Places of the tables and their indexes in PM, their population, and their locks.
//!
//! | table | rows | reached by |
//! |---|---|---|
//! | warehouse, district | an array | their number |
//! | item | an array | an index: I_ID |
//! | stock | an array per warehouse | an index per warehouse: I_ID |
//! | customer | an array per district | two indexes per district: C_ID; last name and C_ID |
//! | order | blocks | two indexes per district: O_ID; C_ID and O_ID, the newest first |
//! | new-order | blocks | an index per district: O_ID |
//! | order-line | blocks | an index per district: O_ID and OL_NUMBER |
//! | history | an array per thread that it appends to, and one for the initial rows | no transaction reads it |
//!
//! Indexes are partitioned by district, as the rows are that they lead to, so that the lock of a district covers
//! them. Blocks and nodes come from an arena per thread, and from one more when the database is populated.
//!
//! | bytes, in this order | |
//! |---|---|
//! | 192 per warehouse, 192 per district | rows |
//! | 128 and, per warehouse, 384 per item | item and stock rows |
//! | 768 per customer | rows |
//! | 64 per index | its root: item, stock of each warehouse, six of each district |
//! | 64, and 128 per row that there may be | history of the initial database, then of each thread: a count of rows on a line of its own; rows |
//! | 64, and room for all that may be inserted | arenas likewise: nodes (256 B), orders and new-orders (64 B), order-lines (128 B) |
//!
//! **Locks**, in ascending order: one per warehouse (`W_YTD`), one per district (its row, its customers, their orders, all
//! that leads to them), and up to 4,096 stripes of the stock rows of each warehouse. Columns and indexes that no transaction
//! changes are read without: the item table, taxes, names and addresses, and the indexes of stock and customers.

use super::TpccConfig;
use super::content::Content;
use super::schema::{
    Row, customer, district, history, item, new_order, order, order_line, stock, warehouse,
};
use crate::layout::Layout;
use crate::structures::allocator::{Arena, Class, block_bytes};
use crate::structures::index::Index;
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::program::{Direct, LockId, Memory, Ptr};
use graven_machine::workload::Request;
use std::ops::RangeInclusive;

/// Orders and new-orders.
pub(super) const SMALL: Class = 1;
/// Order-lines.
pub(super) const LINE: Class = 2;

/// Most order-lines of an order.
pub(super) const LINES_MAX: u64 = 15;

/// Stripes of the stock rows of a warehouse, at most.
const STOCK_STRIPES: u64 = 4096;

/// Bits of a customer's number in an index key.
const CUSTOMER_BITS: u32 = 20;
/// Bits of an order's number in an index key.
const ORDER_BITS: u32 = 40;
const ORDER_MASK: u64 = (1 << ORDER_BITS) - 1;
/// Bits of an order-line's number in an index key.
const LINE_BITS: u32 = 4;

fn row_bytes(words: usize) -> u64 {
    block_bytes(words as u64)
}

/// The indexes of a district.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indexes {
    pub(super) customer: Index,
    pub(super) name: Index,
    pub(super) order: Index,
    pub(super) customer_order: Index,
    pub(super) new_order: Index,
    pub(super) line: Index,
}

impl Indexes {
    const EACH: u64 = 6;

    pub(super) fn all(&self) -> [Index; Self::EACH as usize] {
        [self.customer, self.name, self.order, self.customer_order, self.new_order, self.line]
    }
}

/// Key of a customer in the index by last name.
pub(super) fn name_key(name: u64, c: u64) -> u64 {
    name << CUSTOMER_BITS | c
}

/// Key of an order in the index by customer; the newest comes first.
pub(super) fn customer_order_key(c: u64, o: u64) -> u64 {
    c << ORDER_BITS | (ORDER_MASK - o)
}

/// Keys of a customer's orders, in the index by customer.
pub(super) fn orders_of(c: u64) -> RangeInclusive<u64> {
    customer_order_key(c, ORDER_MASK)..=customer_order_key(c, 0)
}

/// Keys of the customers of a last name.
pub(super) fn names_of(name: u64) -> RangeInclusive<u64> {
    name_key(name, 0)..=name_key(name, (1 << CUSTOMER_BITS) - 1)
}

/// Keys of the order-lines of some orders.
pub(super) fn lines_of(orders: RangeInclusive<u64>) -> RangeInclusive<u64> {
    line_key(*orders.start(), 0)..=line_key(*orders.end(), (1 << LINE_BITS) - 1)
}

/// Key of an order-line.
pub(super) fn line_key(o: u64, number: u64) -> u64 {
    o << LINE_BITS | number
}

/// Parts that [`line_key`] was made of.
pub(super) fn line_of_key(key: u64) -> (u64, u64) {
    (key >> LINE_BITS, key % (1 << LINE_BITS))
}

/// Rows of the history, appended to.
#[derive(Clone, Copy, Debug)]
pub(super) struct History {
    base: Addr,
    pub(super) rows_max: u64,
}

impl History {
    fn count(&self) -> Ptr {
        Ptr::known(self.base)
    }

    fn row(&self, number: u64) -> Ptr {
        Ptr::known(self.base.plus(64 + number * row_bytes(history::WORDS)))
    }

    pub(super) fn append<M: Memory>(&self, m: &mut M, row: &Row<{ history::WORDS }>) {
        let count = m.load(self.count());
        assert!(count < self.rows_max, "the history at {} was sized too small", self.base);
        row.store(m, self.row(count));
        m.store(self.count(), count + 1);
    }

    /// The rows that an image holds.
    ///
    /// # Errors
    /// If there are more than may be.
    pub(super) fn rows(&self, image: &Image) -> Result<impl Iterator<Item = Addr>, String> {
        let count = image.load(self.base);
        let (base, most) = (self.base, self.rows_max);
        if count > most {
            return Err(format!("the history at {base} has {count} rows, more than {most}"));
        }
        let history = *self;
        Ok((0..count).map(move |number| history.row(number).addr))
    }
}

/// The database: addresses and sizes; all its state is in PM.
#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) scale: TpccConfig,
    pub(super) content: Content,
    warehouses: Addr,
    districts: Addr,
    items: Addr,
    stock: Addr,
    customers: Addr,
    roots: Addr,
    /// Histories of the threads, and of the initial database.
    pub(super) histories: Vec<History>,
    pub(super) arenas: Vec<Arena>,
}

/// Inserted nodes of one New-Order, at most, if a district has up to `orders` orders.
fn nodes_of_new_order(orders: u64) -> u64 {
    // By customer anywhere, the others at the end.
    let single = Index::nodes_of_run(orders, 1);
    3 * single + Index::nodes_of_run(orders.saturating_mul(LINES_MAX), LINES_MAX)
}

impl Database {
    /// Lays the database out from the beginning of the range that the request offers; returns it and its end.
    pub(super) fn lay_out(scale: &TpccConfig, request: &Request) -> (Database, Layout) {
        let [w, d, c, o, i] = [
            scale.warehouses,
            scale.districts,
            scale.customers_per_district,
            scale.orders_per_district,
            scale.items,
        ]
        .map(u64::from);
        let districts = w * d;
        let mut layout = Layout::from(request.start);
        let mut array = |rows: u64, words: usize| layout.take(rows * row_bytes(words));
        let warehouses = array(w, warehouse::WORDS);
        let district_rows = array(districts, district::WORDS);
        let items = array(i, item::WORDS);
        let stock = array(w * i, stock::WORDS);
        let customers = array(districts * c, customer::WORDS);
        let roots = layout.take((1 + w + districts * Indexes::EACH) * Index::ROOT_BYTES);

        let orders_max = request.transactions.saturating_add(o);
        let nodes = nodes_of_new_order(orders_max);
        let loaded = [i, w * i]
            .iter()
            .chain(&[districts * c, districts * c])
            .chain(&[districts * o, districts * o, districts * o, districts * o * LINES_MAX])
            .map(|&entries| Index::nodes_max(entries))
            .sum::<u64>()
            + Index::nodes_max(0) * (w + districts * Indexes::EACH);
        let threads = (0..request.threads).map(|t| request.transactions_of(t)).map(|own| {
            let small = own.saturating_mul(2);
            (own, (own.saturating_mul(nodes), small, own.saturating_mul(LINES_MAX)))
        });
        let initial = (districts * c, (loaded, 2 * districts * o, districts * o * LINES_MAX));
        let shares: Vec<_> = threads.chain([initial]).collect();
        let histories = shares.iter().map(|&(rows_max, _)| {
            let bytes = rows_max.saturating_mul(row_bytes(history::WORDS)).saturating_add(64);
            History { base: layout.take_growing(bytes), rows_max }
        });
        let histories = histories.collect();
        let arenas = shares.iter().map(|&(_, (nodes, small, lines))| {
            let [one, two] = [order::WORDS.max(new_order::WORDS), order_line::WORDS].map(row_bytes);
            layout.arena([(Index::NODE_BYTES, nodes), (one, small), (two, lines)])
        });
        let arenas = arenas.collect();
        let content = Content::new(scale, request.seed);
        let scale = scale.clone();
        let database = Database {
            scale,
            content,
            warehouses,
            districts: district_rows,
            items,
            stock,
            customers,
            roots,
            histories,
            arenas,
        };
        (database, layout)
    }

    /// The arena of the initial database.
    fn loader(&self) -> (&Arena, &History) {
        let both = self.arenas.last().zip(self.histories.last());
        both.expect("one more than threads")
    }

    fn district_number(&self, (w, d): (u64, u64)) -> u64 {
        (w - 1) * u64::from(self.scale.districts) + (d - 1)
    }

    /// Every warehouse and district number.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (w, d) = (u64::from(self.scale.warehouses), u64::from(self.scale.districts));
        (1..=w).flat_map(move |w| (1..=d).map(move |d| (w, d)))
    }

    pub(super) fn warehouse(&self, w: u64) -> Ptr {
        Ptr::known(self.warehouses.plus((w - 1) * row_bytes(warehouse::WORDS)))
    }

    pub(super) fn district(&self, place: (u64, u64)) -> Ptr {
        let number = self.district_number(place);
        Ptr::known(self.districts.plus(number * row_bytes(district::WORDS)))
    }

    /// Address of the row of an item. Transactions use the index.
    pub(super) fn item_row(&self, i: u64) -> Addr {
        self.items.plus((i - 1) * row_bytes(item::WORDS))
    }

    /// Number of a stock row, from 0.
    pub(super) fn stock_number(&self, w: u64, i: u64) -> u64 {
        (w - 1) * u64::from(self.scale.items) + (i - 1)
    }

    /// Address of a stock row. Transactions use the index.
    pub(super) fn stock_row(&self, w: u64, i: u64) -> Addr {
        self.stock.plus(self.stock_number(w, i) * row_bytes(stock::WORDS))
    }

    /// Number of a customer among all, from 0.
    pub(super) fn customer_number(&self, place: (u64, u64), c: u64) -> u64 {
        self.district_number(place) * u64::from(self.scale.customers_per_district) + (c - 1)
    }

    /// Address of the row of a customer. Transactions use an index.
    pub(super) fn customer_row(&self, place: (u64, u64), c: u64) -> Addr {
        self.customers.plus(self.customer_number(place, c) * row_bytes(customer::WORDS))
    }

    fn index(&self, number: u64) -> Index {
        Index::new(self.roots.plus(number * Index::ROOT_BYTES))
    }

    pub(super) fn item_index(&self) -> Index {
        self.index(0)
    }

    pub(super) fn stock_index(&self, w: u64) -> Index {
        self.index(w)
    }

    pub(super) fn indexes(&self, place: (u64, u64)) -> Indexes {
        let first =
            1 + u64::from(self.scale.warehouses) + self.district_number(place) * Indexes::EACH;
        let [customer, name, order, customer_order, new_order, line] =
            [0, 1, 2, 3, 4, 5].map(|n| self.index(first + n));
        Indexes { customer, name, order, customer_order, new_order, line }
    }

    pub(super) fn warehouse_lock(&self, w: u64) -> LockId {
        (w - 1) as LockId
    }

    pub(super) fn district_lock(&self, place: (u64, u64)) -> LockId {
        self.scale.warehouses + self.district_number(place) as LockId
    }

    pub(super) fn stock_lock(&self, w: u64, i: u64) -> LockId {
        let stripes = STOCK_STRIPES.min(self.scale.items.into());
        let before = self.scale.warehouses * (1 + self.scale.districts);
        before + ((w - 1) * stripes + (i - 1) % stripes) as LockId
    }

    /// Puts an order into its tables.
    pub(super) fn insert_order<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        place: (u64, u64),
        (o, c): (u64, u64),
        row: &Row<{ order::WORDS }>,
    ) {
        let indexes = self.indexes(place);
        let at = arena.allocate(m, SMALL);
        row.store(m, at);
        indexes.order.insert(m, arena, o, at);
        indexes.customer_order.insert(m, arena, customer_order_key(c, o), at);
    }

    /// Says that an order is still to be delivered.
    pub(super) fn insert_new_order<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        (w, d): (u64, u64),
        o: u64,
    ) {
        let at = arena.allocate(m, SMALL);
        self.new_order_row((w, d), o).store(m, at);
        self.indexes((w, d)).new_order.insert(m, arena, o, at);
    }

    pub(super) fn new_order_row(&self, (w, d): (u64, u64), o: u64) -> Row<{ new_order::WORDS }> {
        let mut row = Row::new();
        row.set(new_order::NO_O_ID, o).set(new_order::NO_D_ID, d).set(new_order::NO_W_ID, w);
        row
    }

    pub(super) fn insert_line<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        place: (u64, u64),
        (o, number): (u64, u64),
        row: &Row<{ order_line::WORDS }>,
    ) {
        let at = arena.allocate(m, LINE);
        row.store(m, at);
        self.indexes(place).line.insert(m, arena, line_key(o, number), at);
    }

    /// Populates the database, in an image that is zero.
    pub(super) fn load(&self, image: &mut Image) {
        let m = &mut Direct::new(image);
        self.arenas.iter().for_each(|arena| arena.format(m));
        let (arena, _) = self.loader();
        self.item_index().format(m, arena);
        for i in 1..=self.scale.items.into() {
            let at = Ptr::known(self.item_row(i));
            self.content.item(i).store(m, at);
            self.item_index().insert(m, arena, i, at);
        }
        for w in 1..=self.scale.warehouses.into() {
            self.content.warehouse(w).store(m, self.warehouse(w));
            self.stock_index(w).format(m, arena);
            for i in 1..=self.scale.items.into() {
                let at = Ptr::known(self.stock_row(w, i));
                self.content.stock(w, i).store(m, at);
                self.stock_index(w).insert(m, arena, i, at);
            }
        }
        for place in self.places() {
            self.load_customers(m, place);
            self.load_orders(m, place);
        }
    }

    fn load_customers(&self, m: &mut Direct<'_>, place: (u64, u64)) {
        let (arena, history) = self.loader();
        let indexes = self.indexes(place);
        indexes.all().iter().for_each(|index| index.format(m, arena));
        self.content.district(place).store(m, self.district(place));
        for c in 1..=self.scale.customers_per_district.into() {
            let at = Ptr::known(self.customer_row(place, c));
            self.content.customer(place, c).store(m, at);
            indexes.customer.insert(m, arena, c, at);
            indexes.name.insert(m, arena, name_key(self.content.name_of(place, c), c), at);
            history.append(m, &self.content.history(place, c));
        }
    }

    fn load_orders(&self, m: &mut Direct<'_>, place: (u64, u64)) {
        let (arena, _) = self.loader();
        let customers = self.content.customers_in_order(place);
        for (o, &c) in (1..=self.scale.orders_per_district.into()).zip(customers.iter().cycle()) {
            let row = self.content.order(place, o, c);
            self.insert_order(m, arena, place, (o, c), &row);
            if o > self.content.delivered() {
                self.insert_new_order(m, arena, place, o);
            }
            for number in 1..=row.0[order::O_OL_CNT.at as usize] {
                let row = self.content.order_line(place, (o, number));
                self.insert_line(m, arena, place, (o, number), &row);
            }
        }
    }
}

const _: () = assert!(order::WORDS as u64 * WORD_BYTES == 64, "an order is one line");
