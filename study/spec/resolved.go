package spec

import (
	"reflect"
	"slices"

	"github.com/noether-ml/noether/internal/config"
)

// Resolved is the text of the study as it was run: paths absolute, variables filled in, the SHA-256
// of every model and the fingerprint of every data set beside it. It is a study file itself, and
// running it checks the hashes.
func (s *Study) Resolved() (string, error) {
	for _, path := range s.paths() {
		path.node.Text = s.absolute(path.text)
	}
	// What keys depend on is written out, lest a default of another version make other cells of it.
	s.node.SetInt("seed", int64(s.Seed))
	s.node.SetInt("memory", int64(s.Memory))
	raw, err := config.Encode(s.node)
	return string(raw), err
}

// KeepHashes takes over the hashes of models, unless isOpen says that they are open here, from the
// study as others have resolved it.
func (s *Study) KeepHashes(resolved []byte, isOpen func(index int) bool) {
	other, err := Parse("study.yaml", resolved, nil)
	if err != nil {
		return // there is none, or one of another version: its hashes are worth no error
	}
	for i, m := range s.Models {
		same := func(o Model) bool { return o.Name == m.Name && o.ONNX.text == s.absolute(m.ONNX.text) }
		j := slices.IndexFunc(other.Models, same)
		if !isOpen(i) && j >= 0 && m.SHA256 == "" && other.Models[j].SHA256 != "" {
			m.node.Set("sha256", other.Models[j].SHA256)
		}
	}
}

// paths lists every path that the study names.
func (s *Study) paths() []*Path {
	var out []*Path
	for i := range s.Models {
		out = append(out, &s.Models[i].ONNX)
		if c := s.Models[i].Preprocess.config; c != nil {
			out = append(out, c)
		}
	}
	for i := range s.Data {
		out = append(out, s.Data[i].paths()...)
	}
	return out
}

func (d *Data) paths() []*Path { return pathsIn(reflect.ValueOf(d)) }

// pathsIn lists the paths that stand in a value, whatever kind of data it is of.
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
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, pathsIn(v.Index(i))...)
		}
	}
	return out
}
