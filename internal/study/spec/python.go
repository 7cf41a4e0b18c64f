package spec

import (
	"cmp"
	"os"
	"regexp"
	"strings"

	"github.com/noether-ml/noether/internal/config"
)

// A PythonFunction is a function of Python in a study: package.module:function, with @ and a hash
// of its source code at the end if a run has written the study.
type PythonFunction struct {
	Use   string // the list of the study that has it: models, transforms or measures
	Name  string // package.module:function
	Input []int  // of a model: shape of a sample, if its preprocessing sets one
	hash  string
	node  *config.Node // with the name
}

var functionName = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*:[\p{L}_][\p{L}\p{N}_.]*$`)

// IsFunction reports whether a text has the form package.module:function.
func IsFunction(name string) bool { return functionName.MatchString(name) }

// Python returns the functions of Python that a run of the study calls.
func (s *Study) Python() []PythonFunction {
	var out []PythonFunction
	add := func(use string, n *config.Node) {
		name, hash, _ := strings.Cut(n.Text, "@")
		if n.Kind == config.String && IsFunction(name) { // another name is that of a function that noether_ml.measure serves
			out = append(out, PythonFunction{Use: use, Name: name, hash: hash, node: n})
		}
	}
	for _, m := range s.Models {
		if m.Python != "" {
			add("models", m.At("python"))
			if f := m.Preprocess.Frame; len(out) > 0 && f.Height > 0 && f.Width > 0 {
				out[len(out)-1].Input = []int{cmp.Or(f.Channels, 3), f.Height, f.Width}
			}
		}
	}
	for _, use := range []string{"transforms", "measures"} {
		if list := s.node.Get(use); list != nil {
			pythonIn(list, func(n *config.Node) { add(use, n) })
		}
	}
	return out
}

// pythonIn calls use with the names of functions in the values of keys python and python-set.
func pythonIn(n *config.Node, use func(*config.Node)) {
	for _, item := range n.Items {
		pythonIn(item, use)
	}
	for _, p := range n.Pairs {
		if p.Key.Text != "python" && p.Key.Text != "python-set" {
			pythonIn(p.Value, use)
			continue
		}
		for _, key := range []string{"function", "functions"} {
			if v := p.Value.Get(key); v != nil {
				for _, name := range append(v.Items, v) {
					use(name)
				}
			}
		}
	}
}

// ExecutableVariable names the environment variable with the Python interpreter of studies that
// name none.
const ExecutableVariable = "NOETHER_PYTHON_EXECUTABLE"

// Interpreter returns the Python interpreter of the study.
func (s *Study) Interpreter() string {
	name := cmp.Or(s.Executable, os.Getenv(ExecutableVariable), "python3")
	if strings.ContainsRune(name, os.PathSeparator) {
		return s.absolute(name)
	}
	return name
}

// PythonFolders returns the folders with modules of the study's own.
func (s *Study) PythonFolders() []string {
	if len(s.PythonPath) == 0 {
		return []string{s.absolute(".")}
	}
	var out []string
	for _, p := range s.PythonPath {
		out = append(out, s.absolute(p.text))
	}
	return out
}

// HashPython appends the hash of its source code to each function of transforms and measures, so
// that keys of cells depend on it. It is an error if the study has another one. digest returns the
// hash, or "" for a function that cannot be loaded.
func (s *Study) HashPython(digest func(use, name string) string) error {
	for _, f := range s.Python() {
		found := digest(f.Use, f.Name)
		if f.Use == "models" || found == "" {
			continue
		}
		found = found[:min(len(found), 16)]
		if f.hash != "" && f.hash != found {
			return f.node.Errorf("the function %s has the hash %s, not %s: it, or its package, differs from the one recorded in the study; remove @%s to accept it", f.Name, found, f.hash, f.hash)
		}
		f.node.Text = f.Name + "@" + found
	}
	for i, t := range s.Transforms {
		s.Transforms[i] = Transform{node: t.node}
		if err := s.Transforms[i].Decode(s.lists.Transforms); err != nil {
			return err
		}
	}
	for i, m := range s.Measures {
		s.Measures[i] = MeasureSpec{entry: m.entry}
		if err := s.Measures[i].Decode(s.lists.Measures); err != nil {
			return err
		}
	}
	return nil
}
