"""What a disk may hold when the power fails: a model that is told what a program did (tests/support/record_io.c).

Nothing is there for sure but what was made durable: of a file what it held at its last fsync or fdatasync, of a folder the names that it
had at its last fsync. The rest may be there, or parts of it, or nothing.
"""

import pathlib
import shutil


class File:
    def __init__(self, data=b""):
        self.data, self.durable = bytearray(data), bytes(data)


class Folder:
    def __init__(self):
        self.names = {}
        self.history = [{}]  # since it was made durable, which is the first


class Disk:
    """Of one folder, which is durable as it is when this begins."""

    def __init__(self, root):
        self.root, self.top = pathlib.Path(root), self._read(pathlib.Path(root))

    def _read(self, path):
        if path.is_file():
            return File(path.read_bytes())
        found = Folder()
        found.names = {child.name: self._read(child) for child in path.iterdir()}
        found.history = [dict(found.names)]
        return found

    def _folder(self, path):
        """The folder that has a path's last name, and that name; None: it lies elsewhere."""
        path = pathlib.Path(path)
        if self.root not in path.parents:
            return None, path.name
        node = self.top
        for part in path.relative_to(self.root).parts[:-1]:
            node = node.names[part]
        return node, path.name

    def _at(self, path):
        if pathlib.Path(path) == self.root:
            return self.top
        folder, name = self._folder(path)
        return folder.names.get(name) if folder else None

    def carry_out(self, line):
        """One line of the record."""
        what, path, second, number, data = line.split("\t")
        folder, name = self._folder(path)
        if what.startswith("sync"):
            self._sync(self.top if what == "sync all" else self._at(path), deep=what == "sync all")
        elif folder is None:
            return
        elif what in ("write", "truncate"):
            self._change(folder.names.get(name), what, int(number), bytes.fromhex(data))
        else:
            self._rename(what, folder, name, second)

    def _change(self, file, what, number, data):
        if file is None:  # its name is gone
            return
        if what == "truncate":
            del file.data[number:]
            file.data.extend(bytes(number - len(file.data)))
        else:
            file.data.extend(bytes(max(0, number - len(file.data))))
            file.data[number : number + len(data)] = data

    def _rename(self, what, folder, name, second):
        changed = [folder]
        if what in ("file", "folder"):
            if name not in folder.names:
                folder.names[name] = File() if what == "file" else Folder()
        elif what == "remove":
            del folder.names[name]
        else:
            other, second = self._folder(second)
            changed.append(other)
            mine = folder.names[name] if what == "link" else folder.names.pop(name)
            if what == "exchange":
                folder.names[name] = other.names[second]
            other.names[second] = mine
        for one in {id(f): f for f in changed}.values():
            one.history.append(dict(one.names))

    def _sync(self, node, deep):
        if isinstance(node, File):
            node.durable = bytes(node.data)
        elif node is not None:
            node.history = [dict(node.names)]
            for child in node.names.values() if deep else ():
                self._sync(child, deep)

    def fail(self, names, data):
        """Write what is left. names(history): which of a folder's states; data(file): what of a file."""
        for child in self.root.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
        self._write(self.top, self.root, names, data)

    def _write(self, folder, path, names, data):
        for name, child in names(folder.history).items():
            if isinstance(child, File):
                (path / name).write_bytes(data(child))
            else:
                (path / name).mkdir()
                self._write(child, path / name, names, data)


def moves(line):
    """Is it the record of a file that goes from one folder to another, or gets a name there?"""
    what, path, second, _, _ = line.split("\t")
    return what in ("rename", "link") and pathlib.Path(path).parent != pathlib.Path(second).parent


def only_what_is_durable(disk):
    disk.fail(lambda history: history[0], lambda file: file.durable)


def names_without_data(disk):
    disk.fail(lambda history: history[-1], lambda file: file.durable)


def what_went_and_nothing_that_came(disk):
    """A file that was moved from one folder to another is in neither: nothing says that a disk does both at once."""

    def names(history):
        return {name: child for name, child in history[0].items() if name in history[-1]}

    disk.fail(names, lambda file: file.durable)


def by_chance(disk, rng):
    def data(file):
        held = bytes(file.data)
        if not held.startswith(file.durable):
            return rng.choice([file.durable, held])
        return held[: rng.choice([len(file.durable), rng.randint(len(file.durable), len(held)), len(held)])]

    disk.fail(rng.choice, data)
