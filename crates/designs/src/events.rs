//! The table of what happens in a design.

/// Declares `Event`, what happens in a design, as a table. Beside each event stands, in this order, as far as it applies:
///
/// | | |
/// |---|---|
/// | `counts FIELD += NUMBER, …;` | counters that it adds to |
/// | `raises FIELD to NUMBER, …;` | counters that keep the largest number |
/// | `covers POINT [if CONDITION], …;` | cover points that it reaches |
/// | `does \|to\| EXPRESSION;` | anything else, with the [`Observation`](graven_machine::design::Observation) |
/// | `says "TEXT", ARGUMENT, …;` | its sentence in a timeline |
///
/// Behind the events, `part NAME(TYPE);` takes in the events of a mechanism, which observes them itself, with what
/// follows the type as further arguments. `Counters` and `Cover` are the design's.
macro_rules! events {
    (
        $(#[$meta:meta])*
        $visibility:vis enum Event;

        $(
            $(#[doc = $doc:literal])+
            $event:ident $({ $($field:ident: $type:ty),+ $(,)? })? =>
                $(counts $($($counter:ident).+ += $number:expr),+;)?
                $(raises $($($gauge:ident).+ to $most:expr),+;)?
                $(covers $($point:ident $(if $condition:expr)?),+;)?
                $(does |$to:ident| $effect:expr;)?
                $(says $text:literal $(, $argument:expr)*;)?
        )+

        $(part $part:ident($inner:ty) $(, $described:expr)?;)*
    ) => {
        $(#[$meta])*
        $visibility enum Event {
            $($(#[doc = $doc])+ $event $({ $($field: $type),+ })?,)+
            $(
                #[doc = "Part of a mechanism."]
                $part($inner),
            )*
        }

        $(
            impl From<$inner> for Event {
                fn from(event: $inner) -> Event {
                    Event::$part(event)
                }
            }
        )*

        impl graven_machine::design::DesignEvent for Event {
            type Counters = Counters;
            type Cover = Cover;

            #[inline(always)]
            fn observe(self, to: &mut graven_machine::design::Observation<'_, Event>) {
                match self {
                    $(Event::$event $({ $($field),+ })? => {
                        $($(to.count().$($counter).+ += $number;)+)?
                        $($({
                            let gauge = &mut to.count().$($gauge).+;
                            *gauge = (*gauge).max($most);
                        })+)?
                        $($(events!(@cover to, $point $(, $condition)?);)+)?
                        $({
                            let $to = &mut *to;
                            $effect;
                        })?
                        $(to.explain(|| format!($text $(, $argument)*));)?
                    })+
                    $(Event::$part(event) => event.observe(to $(, $described)?),)*
                }
            }
        }
    };
    (@cover $to:ident, $point:ident) => {
        $to.cover(Cover::$point)
    };
    (@cover $to:ident, $point:ident, $condition:expr) => {
        $to.cover_if($condition, Cover::$point)
    };
}

pub(crate) use events;
