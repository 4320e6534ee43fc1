"""How rows are stored in shards: stacked in batches, or each tensor under its own name."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from operator import index as whole
from typing import Any, TypeVar, Union

from .. import _core
from ._index import Index
from ._shards import Shards
from ._arrow import ArrowRows
from ._columns import Column
from ._kinds import leaves, settled
from ._types import ColumnFacts, DatasetMode, Manifest, Places, ShardFacts
from ._varying import Varying

__all__ = ["BatchLayout", "KeyLayout", "MissingKeys", "row_numbers", "stacked"]

_Key = TypeVar("_Key")
_OPENED = 64  # shards opened ahead when one is searched for a key
_FEW = 4  # shards that are searched sooner than an index
_ROW_ORDER = "libsafetensors.row_order"


def _starts(counts: Iterable[int]) -> list[int]:
    return [0, *accumulate(counts)]


def row_numbers(numbers: Any) -> Any:
    """Numbers of rows as an array. TypeError for others: of a mask each True would be row 1.
    IndexError for those that no row can have, ValueError for masked ones."""
    import numpy as np

    from ..numpy import check_mask
    check_mask("rows", numbers, "%s")
    found = np.asarray(numbers).reshape(-1)
    if found.dtype.kind == "O":
        return np.array([whole(one) for one in found.tolist()], np.int64)
    if found.size and found.dtype.kind not in "iu":
        raise TypeError("expected numbers of rows, found %s" % found.dtype)
    if found.size and int(found.max()) >> 63 > 0:  # as int64 it would count from the end
        raise IndexError("expected numbers of rows, found %d" % found.max())
    return found.astype(np.int64, copy=False)


def _as_array(tensor: _core.Tensor, framework: str, copy: bool) -> Any:
    if framework == "torch":
        return _fresh(tensor) if copy else tensor.torch()
    if framework != "numpy":
        raise ValueError("framework: expected 'numpy' or 'torch', found %r" % (framework,))
    array = tensor.numpy()
    return array.copy() if copy else array


def _fresh(tensor: _core.Tensor) -> Any:
    """A torch tensor that owns its memory. numpy copies it: torch would use all processors, which
    costs more than it saves for a batch, most of all in processes that load data."""
    import numpy as np
    import torch
    shared = tensor.torch()
    if shared.nbytes != tensor.nbytes or not tensor.nbytes:
        return shared.clone()
    data = np.frombuffer(tensor, np.uint8).copy()
    return torch.from_numpy(data).view(shared.dtype).reshape(shared.shape)


def _arrays(shards: Shards, shard: int, tensors: dict[_Key, _core.Tensor], framework: str,
            copy: bool) -> dict[_Key, Any]:
    """Arrays of tensors of one shard. Those that are not in memory are read together, in the
    order of the file."""
    order = list(tensors)
    if not shards.file(shard).mapped:
        order.sort(key=lambda key: tensors[key].byte_ranges()[:1])
        shards.expect(shard, [one for key in order for one in tensors[key].byte_ranges()])
    found = {key: _as_array(tensors[key], framework, copy) for key in order}
    return {key: found[key] for key in tensors}


class MissingKeys(KeyError):
    """missing: those of the keys asked for that the dataset lacks."""

    def __init__(self, text: str, missing: list[str]) -> None:
        super().__init__(text)
        self.missing = missing


def _chosen(columns: Mapping[str, ColumnFacts],
            keys: frozenset[str] | None) -> dict[str, ColumnFacts]:
    """Those of the keys: columns, or fields of structs as columns of their own."""
    if keys is None:
        return dict(columns)
    found: dict[str, ColumnFacts] = {}
    for column, one in columns.items():
        if column in keys:
            found[column] = one
        else:
            found.update((name, facts) for name, facts in leaves(column, one) if name in keys)
    missing = sorted(keys - set(found))
    if missing:
        raise MissingKeys("keys: expected columns of the dataset (%s), found %s"
                          % (", ".join(columns), ", ".join(missing)), missing)
    return found


class BatchLayout:
    """One tensor per column and file, its rows along the first dimension."""

    mode: DatasetMode = "batch"

    def __init__(self, shards: Shards, manifest: Manifest,
                 keys: frozenset[str] | None) -> None:
        self.shards = shards
        columns = manifest.get("columns")
        try:
            self.stored = _chosen(self._looked_up() if columns is None else columns, keys)
            self._schema = {name: facts for column, one in self.stored.items()
                            for name, facts in leaves(column, one)}
        except ValueError as error:
            raise shards.error("manifest_type", "columns: %s" % error) from None
        self.columns = list(self._schema)
        self._plain = [name for name in self.columns if not self._schema[name].get("encoding")
                       and not self._schema[name].get("nullable")]
        self._varying = Varying(shards, {name: facts for name, facts in self._schema.items()
                                         if name not in self._plain})
        self._stacked = [name for name in self.columns if not self._schema[name].get("encoding")]
        self._begins = _starts(map(shards.rows, range(len(shards))))
        # Of shards whose rows were compared: the dtype and the shape of a row of each column.
        self._rows: dict[int, dict[str, tuple[str, tuple[int, ...]]]] = {}

    def _check(self, shard: int) -> None:
        """Its rows are compared once: those of the same version of a dataset do not change."""
        if shard in self._rows:
            return
        self.shards.stacked(shard, self._plain)
        for name in self._varying.facts:
            self._varying.check(shard, name)
        tensors = {name: self.shards.tensor(shard, name) for name in self._stacked}
        self._rows[shard] = {name: (one.dtype, tuple(one.shape[1:]))
                             for name, one in tensors.items()}

    def _compare(self, shard: int, first: int) -> None:
        """That rows of two shards can stand in one array."""
        own, other = self._rows[shard], self._rows[first]
        for name in self._stacked if own != other else ():
            if own[name] != other[name]:
                raise ValueError("%s: %s: expected rows of %s %s as in other shards, found %s %s"
                                 % (self.shards.name(shard), name, other[name][0],
                                    list(other[name][1]), own[name][0], list(own[name][1])))

    def _looked_up(self) -> dict[str, ColumnFacts]:
        filled = [i for i, one in enumerate(self.shards.facts) if one["samples"]]
        if not filled:
            return {}
        file = self.shards.file(filled[0])
        return {name: {"dtype": file[name].dtype, "shape": list(file[name].shape[1:])}
                for name in file.keys()}

    def schema(self) -> dict[str, ColumnFacts]:
        return {name: facts.copy() for name, facts in self._schema.items()}

    def count(self) -> int:
        return self._begins[-1]

    def bounds(self) -> Iterator[tuple[int, int]]:
        return zip(self._begins, self._begins[1:])

    def row(self, number: int) -> dict[str, Any]:
        shard = bisect_right(self._begins, number) - 1
        self._check(shard)
        at = int(self.shards.stored(shard, number - self._begins[shard]))
        found = self._read(shard, {name: self.shards.tensor(shard, name)[at]
                                   for name in self._plain}, "numpy", True)
        return self._merged(found, {
            name: self._varying.slice(shard, name, at, at + 1,
                                      lambda tensor: _as_array(tensor, "numpy", True))[0]
            for name in self._varying.facts})

    def _read(self, shard: int, tensors: dict[str, _core.Tensor], framework: str,
              copy: bool) -> dict[str, Any]:
        """Arrays of tensors of columns, which may be in several files."""
        if shard not in self.shards.places:
            return _arrays(self.shards, shard, tensors, framework,
                           copy or self._shares(shard, framework))
        files: dict[int, dict[str, _core.Tensor]] = {}
        for name, tensor in tensors.items():
            files.setdefault(self.shards.of(shard, name), {})[name] = tensor
        found: dict[str, Any] = {}
        for at, some in files.items():
            found.update(_arrays(self.shards, at, some, framework,
                                 copy or self._shares(at, framework)))
        return {name: found[name] for name in tensors} if len(files) > 1 else found

    def _shares(self, file: int, framework: str) -> bool:
        """Whether torch would share memory that must not be written to."""
        return framework == "torch" and self.shards.file(file).mapped

    def _merged(self, plain: dict[str, Any], varying: dict[str, Any]) -> dict[str, Any]:
        return {name: plain[name] if name in plain else varying[name] for name in self.columns} \
            if varying else plain

    def arrow(self) -> ArrowRows:
        return ArrowRows(self.shards, self.stored)

    def named(self, name: str) -> dict[str, Any]:
        raise TypeError("expected the number of a row (only KV datasets have names), found %r"
                        % (name,))

    def tensor(self, key: str) -> _core.Tensor:
        raise KeyError("%s: a tensor of a batch dataset is in many files; use take or batches"
                       % key)

    def take(self, numbers: Any, framework: str) -> dict[str, Any]:
        if framework == "torch" and isinstance(numbers, (list, tuple)) and len(numbers) == 1:
            numbers = self._alone(numbers)
        if isinstance(numbers, range) and numbers.step == 1 and numbers and numbers.start >= 0:
            shard = bisect_right(self._begins, numbers.start) - 1
            # A part of a remote shard is gathered: the tensors are cached for the next part.
            if numbers.stop <= self._begins[shard + 1] and (
                    self.shards.place.folder is not None or
                    len(numbers) == self.shards.rows(shard) or self.shards.file(shard).mapped):
                return self._slice(shard, numbers, framework)
        return self._gather(numbers, framework)

    def _alone(self, numbers: Any) -> Any:
        """One row as a range, which costs half as much; in remote storage as it is, because
        ranges are not cached."""
        number = numbers[0]
        if type(number) is not int or self.shards.place.folder is None:
            return numbers
        return range(number, number + 1) if 0 <= number < self.count() else numbers

    def _slice(self, shard: int, numbers: range, framework: str) -> dict[str, Any]:
        self._check(shard)
        begin = self._begins[shard]
        start, stop, keep = self.shards.window(shard, numbers.start - begin, numbers.stop - begin)
        if keep is not None:
            return self._gather(numbers, framework)
        slices = {name: self.shards.tensor(shard, name)[start:stop] for name in self._plain}

        def array_of(name: str) -> Callable[[_core.Tensor], Any]:
            copied = self._shares(self.shards.of(shard, name), framework)
            return lambda tensor: _as_array(tensor, framework, copied)
        return self._merged(self._read(shard, slices, framework, False), {
            name: self._varying.slice(shard, name, start, stop, array_of(name))
            for name in self._varying.facts})

    def _gather(self, numbers: Any, framework: str) -> dict[str, Any]:
        """Gathers rows from any shards, as bytes whatever the dtype."""
        import numpy as np
        wanted = row_numbers(numbers)
        count = self.count()
        if wanted.size and (int(wanted.min()) < -count or int(wanted.max()) >= count):
            raise IndexError("expected rows from 0 to %d" % (count - 1))
        wanted = np.where(wanted < 0, wanted + count, wanted)
        owner = np.searchsorted(np.asarray(self._begins), wanted, side="right") - 1
        if not wanted.size:
            return self._none(framework)
        order = np.argsort(owner, kind="stable")
        cuts = [0, *(np.flatnonzero(np.diff(owner[order])) + 1).tolist(), len(order)]
        parts = {}
        for start, stop in zip(cuts, cuts[1:]):
            places = order[start:stop]
            shard = int(owner[places[0]])
            parts[shard] = places, self.shards.stored(shard, wanted[places] - self._begins[shard])
        shown = int(owner[order[0]])
        self._check(shown)
        first = {name: self.shards.tensor(shown, name) for name in self._stacked}
        out = {name: np.empty((len(wanted), one.nbytes // one.shape[0]), np.uint8)
               for name, one in first.items()}

        def copy(shard: int) -> None:
            self._check(shard)
            self._compare(shard, shown)
            _copy_part(self.shards, shard, *parts[shard], out)

        self.shards.each(copy, parts)
        found = {name: _rows_as(first[name], rows, framework) for name, rows in out.items()}
        if len(self._plain) == len(self.columns):
            return found
        return self._with_varying(found, parts, len(wanted), framework)

    def _with_varying(self, found: dict[str, Any], parts: dict[int, tuple[Any, Any]], count: int,
                      framework: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in self.columns:
            if name in self._plain:
                made[name] = found[name]
            elif name in found:
                made[name] = Column(found[name], None, self._varying.valid_of(name, parts, count),
                                    None)
            else:
                made[name] = self._varying.take(
                    name, parts, count, lambda tensor: _as_array(tensor, framework, False),
                    lambda tensor, raw: _typed(tensor, raw, framework))
        return made

    def _none(self, framework: str) -> dict[str, Any]:
        if not any(self._begins):
            return self._empty(framework)
        shard = next(i for i, end in enumerate(self._begins[1:]) if end)
        return self._slice(shard, range(self._begins[shard], self._begins[shard]), framework)


    def _empty(self, framework: str) -> dict[str, Any]:
        """Columns of a dataset without rows, as its manifest has them; none if it does not say
        enough."""
        facts: ShardFacts = {"name": "", "bytes": 0, "samples": 0, "valid_samples": 0,
                             "first_sample": 0, "tensors": 0, "shadowed": 0, "sha256": None,
                             "deleted": 0}
        try:
            columns = {name: settled(one) for name, one in self.stored.items()}
            places: Places = {0: {name: (None, one) for name, one in columns.items()}}
            shards = Shards(self.shards.place, [facts], False, places=places)
            whole = BatchLayout(shards, {"columns": columns}, None)
            return whole._slice(0, range(0), framework)
        except ValueError:
            return {}


def _rows_as(tensor: _core.Tensor, rows: Any, framework: str) -> Any:
    """Bytes of rows as an array of the dtype and shape that they have in this tensor."""
    import numpy as np
    shape = (len(rows), *tensor.shape[1:])
    if _core.DTYPES[tensor.dtype][0] % 8:  # several elements in a byte
        file = _core.open(_core.save_bytes([("rows", tensor.dtype, shape, rows, None)], None))
        return _as_array(file["rows"], framework, True)
    like = _as_array(tensor[0:0], framework, False)
    if framework == "torch":
        import torch
        found = torch.from_numpy(rows)
        return (found.view(like.dtype) if rows.shape[1] else like.new_empty(0)).reshape(shape)
    return (rows.view(like.dtype) if rows.shape[1] else np.empty(0, like.dtype)).reshape(shape)


def _typed(tensor: _core.Tensor, raw: Any, framework: str) -> Any:
    """Bytes as elements of a tensor's dtype, in one dimension."""
    import numpy as np
    like = _as_array(tensor[0:0], framework, False)
    if framework == "torch":
        import torch
        return torch.from_numpy(raw).view(like.dtype) if len(raw) else like.new_empty(0)
    return raw.view(like.dtype) if len(raw) else np.empty(0, like.dtype)


def _copy_part(shards: Shards, shard: int, places: Any, rows: Any, out: dict[str, Any]) -> None:
    """Copies rows of all columns of a shard."""
    files: dict[int, list[str]] = {}
    for name in out:
        files.setdefault(shards.of(shard, name), []).append(name)
    for at, names in files.items():
        tensors = {name: shards.rows_of(at, name, len(rows)) for name in names}
        file = shards.file(at)
        shards.expect(at, [one for name, whole in tensors.items() if whole is None
                           for first, last in _runs(rows)
                           for one in file[name][first:last + 1].byte_ranges()])
        for name, whole in sorted(tensors.items(), key=lambda item: file[item[0]].offset):
            _copy_rows(shards, at, name, whole, places, rows, out[name])


def _copy_rows(shards: Shards, shard: int, name: str, whole: Any, places: Any, rows: Any,
               out: Any) -> None:
    if whole is None:
        _read_rows(shards.file(shard)[name], places, rows, out)
    elif len(rows) > 4:
        out[places] = whole[rows]
    else:
        for place, row in zip(places.tolist(), rows.tolist()):
            out[place] = whole[row]


def _runs(rows: Any) -> list[tuple[int, int]]:
    """First and last of each run of consecutive rows, ascending."""
    import numpy as np
    found = np.unique(rows)
    cuts = np.flatnonzero(np.diff(found) > 1)
    return list(zip(found[np.append(0, cuts + 1)].tolist(),
                    found[np.append(cuts, len(found) - 1)].tolist()))


def _read_rows(tensor: _core.Tensor, places: Any, rows: Any, out: Any) -> None:
    """Reads runs of consecutive rows at once."""
    import numpy as np
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    for first, last in _runs(rows):
        start, stop = np.searchsorted(sorted_rows, [first, last + 1]).tolist()
        raw = np.frombuffer(tensor[first:last + 1], np.uint8)
        out[places[order[start:stop]]] = \
            raw.reshape(last + 1 - first, -1)[sorted_rows[start:stop] - first]


class KeyLayout:
    """One tensor per column and row, by name."""

    mode: DatasetMode = "kv"

    def __init__(self, shards: Shards, manifest: Manifest, keys: frozenset[str] | None,
                 index: Callable[[], Index | None]) -> None:
        self.shards = shards
        separator = manifest.get("kv_separator")
        self._separator: str = "__" if separator is None else separator
        self.name_col = manifest.get("name_col") or "name"
        self._keys = keys
        self._index: Index | None = None
        self._look_up: Callable[[], Index | None] | None = index
        self._names: dict[int, list[str]] = {}
        self._hidden: dict[int, set[str]] | None = None
        self._deleted: dict[int, set[str]] = {}
        self._shadowed = any(one["shadowed"] for one in shards.facts)
        self._used = list(range(len(shards)))
        self._unseen = set(keys or ())
        if keys is not None or self._shadowed:
            self._find_index()
        if keys is not None:
            self._use(keys, manifest)
        self._begins: list[int] | None = None
        columns = manifest.get("columns")
        self._schema = self._looked_up() if columns is None else columns
        self.columns = list(self._schema)
        self._meeting = self._meets() if columns is not None else None

    def _use(self, keys: frozenset[str], manifest: Manifest) -> None:
        """Selects the shards that hold these keys. If neither an index nor the manifest lists all
        keys, missing ones are found once the shards have been read."""
        found = self._index.places_of(keys) if self._index is not None else None
        if found is not None:
            files = {file for file, _ in found}
            self._used = [i for i in self._used if self.shards.name(i) in files]
            number = {self.shards.name(i): i for i in self._used}
            latest: dict[str, int] = {}
            for file, key in found:
                latest[key] = max(latest.get(key, -1), number.get(file, -1))
            self._unseen -= {key for key, i in latest.items() if key not in self._deleted_in(i)}
            self._check_seen()
        elif "generator" in manifest and "schema" in manifest:
            self._unseen -= manifest["schema"].keys()
            self._check_seen()

    def _find_index(self) -> None:
        look_up, self._look_up = self._look_up, None
        if look_up is not None:
            self._index = look_up()

    def _check_seen(self) -> None:
        if self._unseen:
            missing = sorted(self._unseen)
            more = ", …" if len(missing) > 5 else ""
            raise MissingKeys("keys: expected names of tensors of the dataset, found %s%s"
                              % (", ".join(missing[:5]), more), missing)

    def _looked_up(self) -> dict[str, ColumnFacts]:
        """Columns of a dataset whose manifest lacks them: what follows the separator in the
        names of the first file."""
        columns: dict[str, ColumnFacts] = {}
        for i in self._used:
            if self.shards.facts[i]["samples"]:
                for key in self.shards.file(i).keys():
                    columns.setdefault(self._split(key)[1], {"dtype": None, "shape": None})
                break
        return columns

    def _split(self, key: str) -> tuple[str, str]:
        name, found, column = key.rpartition(self._separator) if self._separator else \
            (key, "", "")
        return (name, column) if found else (key, "")

    def schema(self) -> dict[str, ColumnFacts]:
        return {name: facts.copy() for name, facts in self._schema.items()}

    # ── Names of rows ──

    def _key(self, name: str, column: str) -> str:
        return name + self._separator + column if column else name

    def _hidden_in(self, shard: int) -> set[str]:
        """Keys of a shard whose tensors later ones have replaced, or whose rows are deleted."""
        deleted = self._deleted_in(shard)
        if not self._shadowed:
            return deleted
        if self._hidden is None:
            indexed = self._index.shadowed() if self._index is not None else None
            hidden = self._losers() if indexed is None else indexed
            by_name: dict[int, set[str]] = {i: set() for i in range(len(self.shards))}
            number = {self.shards.name(i): i for i in range(len(self.shards))}
            for file, key in hidden:
                by_name[number[file]].add(key)
            self._hidden = by_name
        return self._hidden[shard] | deleted

    def hide(self, shard: int, keys: Iterable[str]) -> None:
        """Tensors of a shard that nobody sees, as another process found them."""
        self._shadowed = True
        self._hidden = {**(self._hidden or {}), shard: set(keys)}

    def _deleted_in(self, shard: int) -> set[str]:
        found = self._deleted.get(shard)
        if found is None:
            found = self._deleted[shard] = self.shards.deleted_keys(shard)
        return found

    def _losers(self) -> set[tuple[str, str]]:
        """By the headers: the last shard that has a key wins."""
        latest: dict[str, int] = {}
        lost = set()
        for i in range(len(self.shards)):
            for key in self.shards.file(i).keys():
                if key in latest:
                    lost.add((self.shards.name(latest[key]), key))
                latest[key] = i
        return lost

    def names(self, shard: int) -> list[str]:
        """Names of a shard's rows, sorted; of a compacted shard, in the order before."""
        found = self._names.get(shard)
        if found is None:
            found = self._in_order(shard, self._rows_in(shard))
            counted = self.shards.facts[shard]["valid_samples"]
            if self._is_counted() and len(found) != counted:
                raise self.shards.error("dataset_shard", "%s: expected %d rows, found %d"
                                        % (self.shards.name(shard), counted, len(found)))
            self._names[shard] = found
        return found

    def _meets(self) -> tuple[str, str] | None:
        """Two columns of which a tensor may have the same name: that of a row in one, and of
        another row in the other."""
        ends = {self._separator + column: column for column in self.columns}
        sizes = {len(end) for end in ends}
        for end, column in ends.items():
            for size in sizes:
                if size < len(end) and end[-size:] in ends:
                    return ends[end[-size:]], column
        return None

    def _divided(self, shard: int) -> dict[str, set[str]]:
        """Rows of a shard, by name, and their tensors, where a name alone does not say whose
        tensor it is. The shortest name is that of the shortest column, since any other column would
        have brought a shorter one; the rest of its row are no other's; and so on."""
        ends = sorted((self._separator + column for column in self.columns), key=len)
        left = set(self.shards.file(shard).keys())
        count = len(left)
        rows: dict[str, set[str]] = {}
        for key in sorted(left, key=len):
            if key in left:
                end = next((end for end in ends if key.endswith(end)), "")
                name = key[:len(key) - len(end)]
                own = {name + end for end in ends}
                if not own <= left:
                    break
                left -= own
                rows[name] = own
        if left or count != len(ends) * self.shards.facts[shard]["samples"]:
            raise self._undecided()
        return rows

    def _undecided(self) -> _core.SafetensorError:
        shorter, longer = self._meeting or ("", "")
        return self.shards.error(
            "option_value", "columns %s and %s: expected names of tensors that tell which row they "
            "belong to, found the option kv_separator \"%s\", with which one of each column may "
            "have the same name: write the rows again with another separator or name of a column"
            % (shorter, longer, self._separator))

    def _divided_rows(self, shard: int) -> list[str]:
        """Names of the rows that can be seen; a row is seen as a whole."""
        hidden = self._hidden_in(shard)
        names = []
        for name, own in self._divided(shard).items():
            if own & hidden:
                if not own <= hidden:
                    raise self._undecided()
            elif self._keys is None or own & self._keys:
                names.append(name)
                self._unseen -= own
        return sorted(names)

    def _in_order(self, shard: int, names: list[str]) -> list[str]:
        file = self.shards.file(shard)
        text = (file.metadata() or {}).get(_ROW_ORDER)
        if text is None or not self.shards.checked:
            return names
        end = self._separator + self.columns[0]
        rows = sorted(key[:len(key) - len(end)] for key in file.keys() if key.endswith(end))
        width, rest = divmod(len(text), len(rows)) if rows else (0, 1)
        try:
            if rest or not width:
                raise ValueError
            number = {name: int(text[i * width:(i + 1) * width], 16)
                      for i, name in enumerate(rows)}
        except ValueError:
            raise self.shards.error(
                "dataset_shard", "%s: expected %s of its %d rows, found %d digits"
                % (self.shards.name(shard), _ROW_ORDER, len(rows), len(text))) from None
        return sorted(names, key=lambda name: number.get(name, 0))

    def _rows_in(self, shard: int) -> list[str]:
        if self._meeting is not None:
            return self._divided_rows(shard)
        present = set(self.shards.file(shard).keys()) - self._hidden_in(shard)
        if self._keys is not None:
            present &= self._keys
            self._unseen -= present
        elif self.columns and all(self.columns):
            return sorted(self._whole_rows(present))
        return sorted({self._split_known(key)[0] for key in present})

    def _whole_rows(self, present: set[str]) -> Iterator[str]:
        """Names that have all columns. A name may contain the separator."""
        ends = [self._separator + column for column in self.columns]
        for key in present:
            name = key[:len(key) - len(ends[0])]
            if key.endswith(ends[0]) and all(name + end in present for end in ends[1:]):
                yield name

    def _split_known(self, key: str) -> tuple[str, str]:
        for column in sorted(self.columns, key=len, reverse=True):
            if column and key.endswith(self._separator + column):
                return key[:len(key) - len(self._separator + column)], column
        return self._split(key)

    # ── Rows ──

    def _is_counted(self) -> bool:
        """Whether the manifest's counts are those of the visible rows."""
        return not self._shadowed and self._keys is None and self.shards.checked and \
            not self.shards.masks and \
            all(one["sha256"] is not None for one in self.shards.facts)

    def begins(self) -> list[int]:
        if self._begins is None:
            counted = self._is_counted()
            used = set(self._used)
            self._begins = _starts(
                0 if i not in used else one["valid_samples"] if counted else len(self.names(i))
                for i, one in enumerate(self.shards.facts))
            self._check_seen()
        return self._begins

    def count(self) -> int:
        return self.begins()[-1]

    def bounds(self) -> Iterator[tuple[int, int]]:
        return zip(self.begins(), self.begins()[1:])

    def _rows_of(self, shard: int, names: list[str], framework: str,
                 copy: bool) -> list[dict[str, Any]]:
        tensors = {(i, column): tensor for i, name in enumerate(names)
                   for column, tensor in self.tensors(shard, name).items()}
        rows: list[dict[str, Any]] = [{self.name_col: name} for name in names]
        for (i, column), array in _arrays(self.shards, shard, tensors, framework, copy).items():
            rows[i][column or "data"] = array
        return rows

    def tensors(self, shard: int, name: str,
                columns: Iterable[str] | None = None) -> dict[str, _core.Tensor]:
        """Those of a row, by column."""
        file = self.shards.file(shard)
        keys = {column: self._key(name, column)
                for column in (self.columns if columns is None else columns)}
        return {column: file[key] for column, key in keys.items()
                if key in file and (self._keys is None or key in self._keys)}

    def _find(self, number: int) -> tuple[int, str]:
        begins = self.begins()
        shard = bisect_right(begins, number) - 1
        return shard, self.names(shard)[number - begins[shard]]

    def row(self, number: int) -> dict[str, Any]:
        shard, name = self._find(number)
        return self._rows_of(shard, [name], "numpy", True)[0]

    def name_of(self, number: int) -> str:
        return self._find(number)[1]

    def named(self, name: str) -> dict[str, Any]:
        for column in self.columns:
            shard = self._shard_of(self._key(name, column))
            if shard is not None and (self._meeting is None or name in self.names(shard)):
                return self._rows_of(shard, [name], "numpy", True)[0]
        raise KeyError(name)

    def _shard_of(self, key: str) -> int | None:
        """The last shard that has it; all are searched for what an index does not list."""
        holding = self._holding([key])
        for some in (holding, self._used)[:1 + (holding is not self._used)]:
            if self.shards.place.folder is None and len(some) > 1:
                self.shards.each(self.shards.file, some[:-_OPENED - 1:-1])
            found = next((i for i in reversed(some) if key in self.shards.file(i)), None)
            if found is not None:
                return None if key in self._deleted_in(found) else found
        return None

    def _holding(self, keys: Iterable[str]) -> list[int]:
        """The shards that may hold any of these keys."""
        if len(self._used) > _FEW:
            self._find_index()
        found = self._index.places_of(keys) if self._index is not None else None
        if found is None:
            return self._used
        files = {file for file, _ in found}
        return [i for i in self._used if self.shards.name(i) in files]

    def tensor(self, key: str) -> _core.Tensor:
        shard = self._shard_of(key)
        if shard is None or (self._keys is not None and key not in self._keys):
            raise KeyError(key)
        return self.shards.file(shard)[key]

    def take(self, numbers: Any, framework: str) -> dict[str, Any]:
        count = self.count()
        wanted: list[int] = []
        given = numbers if hasattr(numbers, "dtype") else list(numbers)
        for number in row_numbers(given).tolist():
            if not -count <= number < count:
                raise IndexError("expected rows from 0 to %d, found %d" % (count - 1, number))
            wanted.append(number % count)
        by_shard: dict[int, list[int]] = {}
        for place, number in enumerate(wanted):
            by_shard.setdefault(bisect_right(self.begins(), number) - 1, []).append(place)
        rows: list[Any] = [None] * len(wanted)

        def read(shard: int) -> None:
            names, begin = self.names(shard), self.begins()[shard]
            here = [names[wanted[place] - begin] for place in by_shard[shard]]
            for place, row in zip(by_shard[shard], self._rows_of(shard, here, framework, False)):
                rows[place] = row

        if by_shard:
            self._hidden_in(next(iter(by_shard)))  # looked up once, before threads need it
        self.shards.each(read, by_shard)
        return stacked(rows, framework)


def stacked(rows: list[dict[str, Any]], framework: str) -> dict[str, Any]:
    """Column -> one array if all rows have the same shape and dtype, else a list."""
    batch: dict[str, Any] = {}
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        values: list[Any] = [row.get(name) for row in rows]
        kinds = {(getattr(value, "shape", None), getattr(value, "dtype", None))
                 for value in values}
        if len(kinds) != 1 or isinstance(values[0], str) or values[0] is None:
            batch[name] = [value.clone() if hasattr(value, "clone") else value
                           for value in values]
        elif framework == "torch":
            import torch
            batch[name] = torch.stack(values)
        else:
            import numpy as np
            batch[name] = np.stack(values)
    return batch


Layout = Union[BatchLayout, KeyLayout]
