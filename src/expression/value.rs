//! JSON as values of expressions, without copying, and results back to JSON.
//!
//! A line may be 16 MB long. Its texts are borrowed, its lists and maps are converted when they are accessed,
//! and every accessed element is counted, so that an expression over a hostile line terminates.

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cel::ExecutionError;
use cel::common::traits::{self, Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{
    self, CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString, CelUInt,
    Type,
};
use cel::common::value::{Builtin, BuiltinRef, CowVal, StaticVal, Val};
use serde_json::{Map, Number, Value};

use super::Failed;

/// The maximum number of values that the expressions of one line may access together.
const MAX_ACCESSES: u64 = 1_000_000;
/// The maximum bytes of JSON in a result, more than any line has.
const MAX_RESULT: usize = 64 << 20;

/// The work that remains for the expressions that share it.
#[derive(Debug, Clone)]
pub struct Work(Arc<AtomicU64>);

impl Default for Work {
    fn default() -> Self {
        Self::of(MAX_ACCESSES)
    }
}

impl Work {
    /// Allows access to this many values.
    pub fn of(most: u64) -> Self {
        Self(Arc::new(AtomicU64::new(most)))
    }

    /// Takes work for `n` values, and returns true if there was enough.
    pub(super) fn take(&self, n: usize) -> bool {
        let n = n as u64;
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(n)));
        left.is_ok_and(|left| left > n)
    }

    /// Returns true if no work is left.
    pub fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Work is a value, so that expressions can pass it to functions that make values. Expressions cannot name it.
impl Val for Work {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        &types::DYN_TYPE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Work {}

/// A JSON list or map.
#[derive(Debug)]
pub(super) struct Json<'v> {
    value: Cow<'v, Value>,
    work: Cow<'v, Work>,
    list: OnceLock<CelList<'v>>,
    map: OnceLock<CelMap<'v>>,
}

impl<'v> Json<'v> {
    /// Wraps borrowed JSON.
    pub(super) fn of(value: &'v Value, work: &'v Work) -> Box<dyn Val + 'v> {
        boxed(Cow::Borrowed(value), &Cow::Borrowed(work))
    }

    /// Wraps JSON that an expression made.
    pub(super) fn owned<'w>(value: Value, work: &Work) -> Box<dyn Val + 'w> {
        boxed(Cow::Owned(value), &Cow::Owned(work.clone()))
    }

    fn take(&self, n: usize) -> bool {
        self.work.take(n)
    }

    fn items(&self) -> &[Value] {
        self.value.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn entries(&self) -> Option<&Map<String, Value>> {
        self.value.as_object()
    }

    fn within<'w>(&self, pick: impl Fn(&Value) -> Option<&Value>) -> Option<Box<dyn Val + 'w>>
    where
        'v: 'w,
    {
        match &self.value {
            // The value is borrowed for the life of the line, and not only for the life of this view.
            Cow::Borrowed(value) => within_borrowed(value, pick, &self.work),
            Cow::Owned(value) => pick(value).map(|found| boxed(Cow::Owned(found.clone()), &self.work)),
        }
    }

    /// Returns the elements of a list, or the keys of a map, in their order in the line.
    fn opened(&self) -> &CelList<'v> {
        self.list.get_or_init(|| {
            let length = self.value.as_array().map_or_else(|| self.entries().map_or(0, Map::len), Vec::len);
            if !self.take(length) {
                return CelList::from(Vec::new());
            }
            let elements: Vec<Box<dyn Val + 'v>> = match &self.value {
                Cow::Borrowed(Value::Array(list)) => {
                    list.iter().map(|value| boxed(Cow::Borrowed(value), &self.work)).collect()
                }
                Cow::Borrowed(Value::Object(map)) => {
                    map.keys().map(|key| Box::new(CelString::from(key.as_str())) as Box<dyn Val + 'v>).collect()
                }
                Cow::Owned(Value::Array(list)) => {
                    list.iter().map(|value| boxed(Cow::Owned(value.clone()), &self.work)).collect()
                }
                Cow::Owned(Value::Object(map)) => {
                    map.keys().map(|key| Box::new(CelString::from(key.clone())) as Box<dyn Val + 'v>).collect()
                }
                _ => Vec::new(),
            };
            CelList::from(elements)
        })
    }

    fn opened_map(&self) -> &CelMap<'v> {
        self.map.get_or_init(|| {
            let mut map: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
            if !self.take(self.entries().map_or(0, Map::len)) {
                return CelMap::from(map);
            }
            match &self.value {
                Cow::Borrowed(Value::Object(entries)) => map.extend(
                    entries
                        .iter()
                        .map(|(key, value)| (CelMapKey::from(key.as_str()), boxed(Cow::Borrowed(value), &self.work))),
                ),
                Cow::Owned(Value::Object(entries)) => map.extend(
                    entries.iter().map(|(key, value)| (key_of(key), boxed(Cow::Owned(value.clone()), &self.work))),
                ),
                _ => {}
            }
            CelMap::from(map)
        })
    }
}

fn key_of<'v>(key: &str) -> CelMapKey<'v> {
    CelMapKey::String(CelString::from(key.to_owned()))
}

fn within_borrowed<'v>(
    value: &'v Value,
    pick: impl Fn(&Value) -> Option<&Value>,
    work: &Cow<'v, Work>,
) -> Option<Box<dyn Val + 'v>> {
    pick(value).map(|found| boxed(Cow::Borrowed(found), work))
}

fn boxed<'v>(value: Cow<'v, Value>, work: &Cow<'v, Work>) -> Box<dyn Val + 'v> {
    match value {
        Cow::Borrowed(Value::String(text)) => Box::new(CelString::from(text.as_str())),
        Cow::Owned(Value::String(text)) => Box::new(CelString::from(text)),
        value => match value.as_ref() {
            Value::Null => Box::new(CelNull),
            Value::Bool(found) => Box::new(CelBool::from(*found)),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Box::new(CelInt::from(number)),
                (None, Some(number)) => Box::new(CelUInt::from(number)),
                (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
            },
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Box::new(Json { value, work: work.clone(), list: OnceLock::new(), map: OnceLock::new() })
            }
        },
    }
}

impl<'v> Val for Json<'v> {
    fn get_type(&self) -> &Type {
        if self.value.is_array() { &types::LIST_TYPE } else { &types::MAP_TYPE }
    }

    fn cel_type() -> &'static Type {
        &types::DYN_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        self.value.is_array().then_some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        if self.value.is_array() { self.opened().equals(other) } else { self.opened_map().equals(other) }
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        boxed(self.value.clone(), &self.work)
    }

    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        if self.value.is_array() { BuiltinRef::List(self.opened()) } else { BuiltinRef::Map(self.opened_map()) }
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        if self.value.is_array() {
            self.opened();
            return self.list.into_inner().map(Builtin::List);
        }
        self.opened_map();
        self.map.into_inner().map(Builtin::Map)
    }
}

impl Adder for Json<'_> {
    fn add<'b, 'w>(&'b self, rhs: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        self.opened().add(rhs)
    }
}

impl Container for Json<'_> {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        if let (Some(entries), Some(key)) = (self.entries(), value.downcast_ref::<CelString>()) {
            return Ok(entries.contains_key(key.inner()));
        }
        if self.value.is_array() { self.opened().contains(value) } else { self.opened_map().contains(value) }
    }
}

impl Indexer for Json<'_> {
    fn get<'b, 'w>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        self.at(index).map(CowVal::Owned)
    }

    fn steal<'w>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'w>, ExecutionError>
    where
        Self: 'w,
    {
        self.at(index)
    }
}

impl<'v> Json<'v> {
    fn at<'w>(&self, index: &dyn Val) -> Result<Box<dyn Val + 'w>, ExecutionError>
    where
        'v: 'w,
    {
        if self.value.is_array() {
            if let Some(number) = index.downcast_ref::<CelInt>().map(|number| *number.inner()) {
                let position = usize::try_from(number).ok();
                let found = position.and_then(|n| self.within(|value| value.as_array().and_then(|list| list.get(n))));
                return found.ok_or(ExecutionError::IndexOutOfBounds(cel::Value::Int(number)));
            }
            return self.opened().get(index).map(CowVal::into_owned);
        }
        if let Some(key) = index.downcast_ref::<CelString>() {
            let found = self.within(|value| value.as_object().and_then(|map| map.get(key.inner())));
            return found.ok_or_else(|| ExecutionError::no_such_key(key.inner()));
        }
        self.opened_map().get(index).map(CowVal::into_owned)
    }
}

impl<'v> Iterable for Json<'v> {
    fn iter<'b, 'w>(&'b self) -> Box<dyn traits::Iterator<'b, 'w> + 'b>
    where
        Self: 'w,
    {
        Box::new(Counted { elements: self.opened().inner().iter(), work: &self.work })
    }
}

/// An iterator that counts its elements as work.
struct Counted<'b, 'v> {
    elements: std::slice::Iter<'b, Box<dyn Val + 'v>>,
    work: &'b Work,
}

impl<'b, 'v: 'w, 'w> traits::Iterator<'b, 'w> for Counted<'b, 'v> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'w)> {
        let more = self.work.take(1);
        self.elements.next().filter(|_| more).map(|element| element.as_ref() as &'b (dyn Val + 'w))
    }
}

impl Sizer for Json<'_> {
    fn size(&self) -> CelInt {
        let size = if self.value.is_array() { self.items().len() } else { self.entries().map_or(0, Map::len) };
        CelInt::from(i64::try_from(size).unwrap_or(i64::MAX))
    }
}

impl Zeroer for Json<'_> {
    fn is_zero_value(&self) -> bool {
        *self.size().inner() == 0
    }
}

/// Converts a result to JSON. Keys of maps that an expression made are sorted: CEL's own maps have no order.
pub(super) fn to_json(value: &(dyn Val + '_)) -> Result<Value, Failed> {
    let mut room = MAX_RESULT;
    convert(value, &mut room, 0)
}

fn convert(value: &(dyn Val + '_), room: &mut usize, depth: usize) -> Result<Value, Failed> {
    let mut take = |bytes: usize| {
        *room = room.checked_sub(bytes).ok_or_else(|| Failed::Broken("the result is too large".to_owned()))?;
        Ok(())
    };
    if depth > 200 {
        return Err(Failed::Broken("the result is nested too deeply".to_owned()));
    }
    take(8)?;
    if let Some(text) = value.downcast_ref::<CelString>() {
        take(text.inner().len())?;
        return Ok(Value::String(text.inner().to_owned()));
    }
    if let Some(found) = value.downcast_ref::<CelBool>() {
        return Ok(Value::Bool(*found.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Ok(Value::from(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        let number = Number::from_f64(*number.inner());
        return number.map(Value::Number).ok_or_else(|| Failed::Broken("the result is not a finite number".to_owned()));
    }
    if let Some(optional) = value.downcast_ref::<CelOptional>() {
        return match optional.option() {
            Some(inner) => convert(inner, room, depth + 1),
            None => Err(Failed::Absent("the optional is empty".to_owned())),
        };
    }
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        let elements = list.inner().iter().map(|element| convert(element.as_ref(), room, depth + 1));
        return elements.collect::<Result<Vec<_>, _>>().map(Value::Array);
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut entries = Vec::with_capacity(map.inner().len());
        for (key, element) in map.inner() {
            let key = match key {
                CelMapKey::String(key) => key.inner().to_owned(),
                CelMapKey::Bool(key) => key.inner().to_string(),
                CelMapKey::Int(key) => key.inner().to_string(),
                CelMapKey::UInt(key) => key.inner().to_string(),
            };
            entries.push((key, convert(element.as_ref(), room, depth + 1)?));
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        return Ok(Value::Object(entries.into_iter().collect()));
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return Ok(Value::String(String::from_utf8_lossy(bytes.inner()).into_owned()));
    }
    Err(Failed::Broken(format!("the result is {}, which is not a JSON value", kind_of(value))))
}

/// Returns a value's kind, for messages.
pub(super) fn kind_of(value: &(dyn Val + '_)) -> String {
    match value.get_type().name() {
        "null_type" => "null".to_owned(),
        "int" | "uint" | "double" => "a number".to_owned(),
        "string" => "a text".to_owned(),
        "bool" => "a boolean".to_owned(),
        other => format!("a {other}"),
    }
}
