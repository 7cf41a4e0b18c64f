package spec

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch/uri"
)

// globbed are the keys of an entry of models that may be a glob on files or folders.
var globbed = []string{"onnx", "activations"}

// listed are the keys of an entry of models that may be a list.
var listed = append(slices.Clone(globbed), "url", "python")

// expandLists replaces every entry of models whose file, folder, address or function is a glob or
// a list by an entry for each.
func (s *Study) expandLists() error { return s.expandModels(s.expandList) }

// expandModels replaces every entry of models by those that expand returns, unless they are nil.
func (s *Study) expandModels(expand func(entry *config.Node) ([]*config.Node, error)) error {
	models := s.node.Get("models")
	if models == nil {
		return nil
	}
	entries := models.Items
	if models.Kind == config.Map {
		entries = []*config.Node{models.Clone()}
	}
	var out []*config.Node
	found := false
	for _, entry := range entries {
		expanded, err := expand(entry)
		if err != nil {
			return err
		}
		if expanded == nil {
			out = append(out, entry)
			continue
		}
		out, found = append(out, expanded...), true
	}
	if found {
		models.Kind, models.Items, models.Pairs = config.List, out, nil
	}
	return nil
}

// expandList returns the entries that an entry of models stands for; nil: itself, as also an entry
// with a name whose pattern matches nothing, since a file may have that name.
func (s *Study) expandList(entry *config.Node) ([]*config.Node, error) {
	for _, key := range listed {
		at := entry.Get(key)
		if at == nil {
			continue
		}
		items := []*config.Node{at}
		if at.Kind == config.List {
			items = at.Items
		}
		var names, values []string
		many := at.Kind == config.List
		for _, item := range items {
			value, err := item.Scalar()
			if err != nil {
				return nil, err
			}
			if !slices.Contains(globbed, key) || !s.isGlob(value) {
				names, values = append(names, nameOfModel(value)), append(values, value)
				continue
			}
			found, err := s.glob(item, value)
			if err != nil && at.Kind != config.List && entry.Get("name") != nil {
				return nil, nil // the path of a missing file, which fails this model alone
			}
			if err != nil {
				return nil, err
			}
			many = true
			for _, path := range found {
				names, values = append(names, nameOfMatch(value, path)), append(values, path)
			}
		}
		if !many {
			return nil, nil
		}
		if len(values) == 0 {
			return nil, at.Errorf("the list is empty")
		}
		if n := entry.Get("sha256"); n != nil {
			return nil, n.Errorf("sha256 is that of one file, and %s stands for several: leave it out", key)
		}
		return entriesOf(entry, key, names, values), nil
	}
	return nil, nil
}

// entriesOf returns an entry for each value of a key, with the keys of the given entry. Its name is
// the prefix of those of the entries.
func entriesOf(entry *config.Node, key string, names, values []string) []*config.Node {
	var out []*config.Node
	for i, value := range values {
		one, name := entry.Clone(), names[i]
		if n := entry.Get("name"); n != nil {
			name = n.Text + "/" + name
		}
		one.Set("name", name)
		one.Set(key, value)
		out = append(out, one)
	}
	return out
}

// isGlob reports whether a path is a pattern. A file of that very name is none.
func (s *Study) isGlob(value string) bool {
	if uri.IsURL(value) || !strings.ContainsAny(value, "*?[") {
		return false
	}
	_, err := os.Stat(s.Resolve(value))
	return err != nil
}

// glob returns the paths that match a pattern, in order. Paths are relative if the pattern is.
func (s *Study) glob(at *config.Node, pattern string) ([]string, error) {
	found, err := filepath.Glob(s.Resolve(pattern))
	switch {
	case err != nil:
		return nil, at.Errorf("%q is not a glob: %w", pattern, err)
	case strings.Contains(pattern, "**"):
		return nil, at.Errorf("%q: ** stands for no depth of folders: write a pattern for each folder", pattern)
	case len(found) == 0:
		return nil, at.Errorf("no file matches %q: %w", pattern, fs.ErrNotExist)
	}
	if !filepath.IsAbs(pattern) && !strings.HasPrefix(pattern, "~/") {
		base := s.Resolve(".")
		for i, f := range found {
			if found[i], err = filepath.Rel(base, f); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// nameOfModel returns the name of a model of a list: the last part of its path or address, without
// ".onnx", or the function of Python.
func nameOfModel(value string) string {
	value, _, _ = strings.Cut(strings.TrimRight(value, "/"), "?")
	value = value[strings.LastIndexAny(value, ":\\")+1:]
	name := path.Base(value)
	if name == "model.onnx" {
		name = path.Base(path.Dir(value))
	}
	return strings.TrimSuffix(name, ".onnx")
}

// nameOfMatch returns the name of a model that matches a pattern: its path below the folders that
// the pattern names, without ".onnx" and a last part "model".
func nameOfMatch(pattern, match string) string {
	fixed := filepath.ToSlash(filepath.Clean(pattern))
	fixed = fixed[:strings.IndexAny(fixed, "*?[")]
	fixed = fixed[:strings.LastIndex(fixed, "/")+1]
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(match), fixed), ".onnx")
	return strings.TrimSuffix(name, "/model")
}
