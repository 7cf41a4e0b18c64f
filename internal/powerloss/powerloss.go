// Package powerloss simulates losses of power.
//
// Record records the changes that package filesys, by whose functions the program writes files,
// makes below a folder. A Disk replays them, and makes the folder that is left if the power fails
// after any number of changes. What was not synced by then may be lost: the data of a file, and the
// entries of a folder, separately.
//
// The model is stricter than most file systems: syncing a file does not save its name, and folders
// lose entries independently of each other. Within a folder, changes reach the disk in order.
package powerloss

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// A Log is a recording of the changes of a folder and of what is in it.
type Log struct {
	dir     string           // the folder's absolute path
	base    *node            // the folder before the changes
	Changes []filesys.Change // those that succeeded, in order
}

// Record records the changes below a folder until stop is called. The folder need not exist yet.
// The files that it has at the start are regarded as synced.
func Record(dir string) (log *Log, stop func(), err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	log = &Log{dir: dir, base: newFolder()}
	if err := log.base.read(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	// Package filesys calls the function for each change, which do makes.
	stop, err = filesys.Observe(dir, func(c filesys.Change, do func() error) error {
		c.Data = slices.Clone(c.Data)
		err := do()
		if err == nil {
			log.Changes = append(log.Changes, c)
		}
		return err
	})
	return log, stop, err
}

// A node is a file or a folder.
type node struct {
	folder bool

	data   []byte // of a file
	synced int    // length of the data that is on the disk

	entries map[string]*node // of a folder
	onDisk  map[string]*node // the entries that are on the disk
	pending []entryChange    // the changes of the entries since the last sync
}

// An entryChange is a change of a folder's entries, by name: the new node, or nil if the entry is
// removed.
type entryChange map[string]*node

func newFolder() *node {
	return &node{folder: true, entries: map[string]*node{}, onDisk: map[string]*node{}}
}

// read reads the files of a folder on the disk.
func (n *node) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		child := newFolder()
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = child.read(path)
		} else {
			child = &node{}
			child.data, err = os.ReadFile(path)
			child.synced = len(child.data)
		}
		if err != nil {
			return err
		}
		n.entries[e.Name()], n.onDisk[e.Name()] = child, child
	}
	return nil
}

// clone returns a copy of a tree. seen maps nodes that were copied before to their copies, so that
// a node with several names is copied once.
func (n *node) clone(seen map[*node]*node) *node {
	if n == nil {
		return nil
	}
	if c := seen[n]; c != nil {
		return c
	}
	c := &node{folder: n.folder, data: n.data, synced: n.synced}
	seen[n] = c
	copyOf := func(entries map[string]*node) map[string]*node {
		out := map[string]*node{}
		for name, child := range entries {
			out[name] = child.clone(seen)
		}
		return out
	}
	c.entries, c.onDisk = copyOf(n.entries), copyOf(n.onDisk)
	for _, p := range n.pending {
		c.pending = append(c.pending, copyOf(p))
	}
	return c
}

// change changes entries of a folder.
func (n *node) change(c entryChange) {
	apply(n.entries, c)
	n.pending = append(n.pending, c)
}

func apply(entries map[string]*node, c entryChange) {
	for name, child := range c {
		if child == nil {
			delete(entries, name)
		} else {
			entries[name] = child
		}
	}
}

// sync puts the data of a file, or the entries of a folder, on the disk.
func (n *node) sync() {
	n.synced, n.onDisk, n.pending = len(n.data), maps.Clone(n.entries), nil
}

// A Disk is the state of a recorded folder after some of its changes.
type Disk struct {
	log  *Log
	root *node
	done int // number of changes that were replayed
}

// Replay returns the disk before the first change.
func (l *Log) Replay() *Disk {
	return &Disk{log: l, root: l.base.clone(map[*node]*node{})}
}

// find returns the folder that holds a path, and the path's name in it. The name is "" for the
// recorded folder itself.
func (d *Disk) find(path string) (*node, string, error) {
	rel, err := filepath.Rel(d.log.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "", fmt.Errorf("%s is not below %s", path, d.log.dir)
	}
	if rel == "." {
		return d.root, "", nil
	}
	n := d.root
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for _, part := range parts[:len(parts)-1] {
		if n = n.entries[part]; n == nil || !n.folder {
			return nil, "", fmt.Errorf("%s has no folder", path)
		}
	}
	return n, parts[len(parts)-1], nil
}

// Next replays the next change. It reports whether there was one.
func (d *Disk) Next() (bool, error) {
	if d.done == len(d.log.Changes) {
		return false, nil
	}
	c := d.log.Changes[d.done]
	d.done++
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return false, err
	}
	parent, name, err := d.find(path)
	if err != nil {
		return false, err
	}
	n := parent
	if name != "" {
		n = parent.entries[name]
	}
	if n == nil && c.Op != filesys.OpMkdir && c.Op != filesys.OpCreate {
		return false, fmt.Errorf("%v of %s, which does not exist: it was not made through package filesys", c.Op, c.Path)
	}
	switch c.Op {
	case filesys.OpMkdir:
		if n == nil {
			parent.change(entryChange{name: newFolder()})
		}
	case filesys.OpCreate:
		parent.change(entryChange{name: {}})
	case filesys.OpWrite:
		n.data = append(n.data[:len(n.data):len(n.data)], c.Data...)
	case filesys.OpTruncate:
		n.data, n.synced = n.data[:c.Size:c.Size], min(n.synced, int(c.Size))
	case filesys.OpSync:
		n.sync()
	case filesys.OpRename:
		return true, d.rename(c, parent, name, n)
	case filesys.OpRemove, filesys.OpRemoveAll:
		d.remove(parent, name, n)
	}
	return true, nil
}

func (d *Disk) rename(c filesys.Change, parent *node, name string, n *node) error {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	newParent, newName, err := d.find(to)
	if err != nil {
		return err
	}
	if newParent == parent {
		parent.change(entryChange{name: nil, newName: n})
		return nil
	}
	newParent.change(entryChange{newName: n})
	parent.change(entryChange{name: nil})
	return nil
}

// remove removes an entry of parent. If it is a folder, the entries in it are removed first.
func (d *Disk) remove(parent *node, name string, n *node) {
	for _, child := range slices.Sorted(maps.Keys(n.entries)) {
		d.remove(n, child, n.entries[child])
	}
	parent.change(entryChange{name: nil})
}

// A Loss says what is lost of the changes that were not synced.
type Loss int

// The losses.
const (
	Nothing    Loss = iota // all changes are on the disk, as after a kill of the process
	Unsynced               // nothing is on the disk that was not synced
	FileData               // all names are on the disk, but of files only the data that was synced
	RandomPart             // a random part of the unsynced changes and data is on the disk
)

// Losses are all losses.
var Losses = []Loss{Nothing, Unsynced, FileData, RandomPart}

// String returns the name of the loss.
func (l Loss) String() string {
	return [...]string{"nothing lost", "unsynced changes lost", "unsynced data lost", "random part lost"}[l]
}

// Write makes the folder dir, which must not exist, as a power loss after the replayed changes
// leaves it. It returns the number of files that it wrote. RandomPart draws from r.
func (d *Disk) Write(dir string, loss Loss, r *rand.Rand) (files int, err error) {
	return d.root.write(dir, loss, r)
}

func (n *node) write(path string, loss Loss, r *rand.Rand) (files int, err error) {
	if !n.folder {
		return 1, os.WriteFile(path, n.data[:n.survivingLen(loss, r)], 0o666)
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		return 0, err
	}
	entries := n.entries
	if loss == Unsynced || loss == RandomPart {
		entries = maps.Clone(n.onDisk)
	}
	if loss == RandomPart {
		for _, c := range n.pending[:r.IntN(len(n.pending)+1)] {
			apply(entries, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		more, err := entries[name].write(filepath.Join(path, name), loss, r)
		if err != nil {
			return files, err
		}
		files += more
	}
	return files, nil
}

// survivingLen returns the length of a file's data that is on the disk after a loss.
func (n *node) survivingLen(loss Loss, r *rand.Rand) int {
	switch loss {
	case Unsynced, FileData:
		return n.synced
	case RandomPart:
		return n.synced + r.IntN(len(n.data)-n.synced+1)
	}
	return len(n.data)
}
