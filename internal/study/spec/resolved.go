package spec

import (
	"cmp"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch/uri"
)

// Resolved returns the text of the resolved study. It is itself a study file, and running it checks
// the hashes.
func (s *Study) Resolved() (string, error) {
	for _, path := range s.paths() {
		path.node.Text = s.absolute(path.text)
	}
	if len(s.Python()) > 0 {
		s.node.Set("python", s.Interpreter())
		if len(s.PythonPath) == 0 {
			s.node.Set("python-path", s.absolute("."))
		}
	}
	// Write the settings that the keys of cells depend on, so that a later version with other
	// defaults computes the same keys.
	s.node.SetInt("seed", int64(s.Seed))
	s.node.SetInt("memory", int64(s.Memory))
	raw, err := config.Encode(s.node)
	return string(raw), err
}

// KeepHashes copies the hashes of the models that this process has not opened (isOpen returns
// false) from an earlier resolved study. A run of some of the models opens only these, and must not
// remove the hashes of the others.
func (s *Study) KeepHashes(resolved []byte, isOpen func(index int) bool) {
	other, err := Parse("study.yaml", resolved, nil, s.lists)
	if err != nil {
		return // it is missing, or another version wrote it: the hashes are optional
	}
	for i, m := range s.Models {
		address := s.absolute(m.Address().text)
		same := func(o Model) bool {
			return o.Name == m.Name && (m.Python != "" && m.Python == o.Python || uri.SameModel(o.Address().text, address))
		}
		j := slices.IndexFunc(other.Models, same)
		if !isOpen(i) && j >= 0 && m.SHA256 == "" && other.Models[j].SHA256 != "" {
			m.node.Set("sha256", other.Models[j].SHA256)
			if found := other.Models[j].Address().text; found != address {
				s.Pin(address, found) // a revision of a model on the Hugging Face hub: keep its commit
			}
		}
	}
}

// Pin records that the resolved study contains the address pinned, which names a commit of the
// Hugging Face hub, instead of address.
func (s *Study) Pin(address, pinned string) {
	if s.pinned == nil {
		s.pinned = map[string]string{}
	}
	s.pinned[address] = pinned
}

// absolute returns the absolute form of a path of the study, for a study file in another folder.
// URLs are returned unchanged, or as they are pinned.
func (s *Study) absolute(path string) string {
	path = s.Resolve(path)
	if uri.IsURL(path) {
		return cmp.Or(s.pinned[path], path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (s *Study) paths() []*Path {
	var out []*Path
	for i := range s.Models {
		for _, p := range []*Path{&s.Models[i].ONNX, &s.Models[i].Activations} {
			if p.node != nil {
				out = append(out, p)
			}
		}
		if c := s.Models[i].Preprocess.File; c != nil {
			out = append(out, c)
		}
	}
	for i := range s.Data {
		out = append(out, s.Data[i].paths()...)
	}
	for i := range s.PythonPath {
		out = append(out, &s.PythonPath[i])
	}
	return out
}

func (d *Data) paths() []*Path { return pathsIn(reflect.ValueOf(d)) }

func pathsIn(v reflect.Value) []*Path {
	var out []*Path
	switch v.Kind() {
	case reflect.Pointer:
		if p, ok := v.Interface().(*Path); ok {
			if p != nil && p.node != nil {
				out = append(out, p)
			}
		} else if !v.IsNil() {
			out = pathsIn(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Path]() {
			return pathsIn(v.Addr())
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				out = append(out, pathsIn(v.Field(i))...)
			}
		}
	case reflect.Interface:
		return pathsIn(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, pathsIn(v.Index(i))...)
		}
	}
	return out
}
