package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
)

const pythonText = `name: test
data: [{name: shapes, shapes: {n: 20, size: 8, seed: 2}}]
models: [{name: m, python: "mine:net", preprocess: {crop: [8, 6]}}]
transforms:
  - python: {function: "mine:fog", strength: {values: [0.1, 0.2]}}
  - sequence: [{rotate: 15}, {python: {function: mine:noise}}]
measures: [distance, {python: {function: "a.b:angle", functions: ["a.b:size", old-0123]}}]
`

// TestPythonFunctions checks that the functions of a study are found, that their hashes are part of
// what keys depend on, and that another hash than that of the study is an error.
func TestPythonFunctions(t *testing.T) {
	t.Parallel()
	s, err := catalog.Parse("study.yaml", []byte(pythonText), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Python() {
		got = append(got, fmt.Sprint(f.Use, " ", f.Name, f.Input))
	}
	if want := "models mine:net[3 8 6], transforms mine:fog[], transforms mine:noise[], measures a.b:angle[], measures a.b:size[]"; strings.Join(got, ", ") != want {
		t.Errorf("functions %q, want %q", got, want)
	}
	before := fmt.Sprint(s.Transforms[0].CanonicalForm(), s.Transforms[1].CanonicalForm(), s.Measures[1].Settings())
	digest := func(use, name string) string { return strings.Repeat(name[len(name)-1:], 20) }
	if err := s.HashPython(digest); err != nil {
		t.Fatal(err)
	}
	after := fmt.Sprint(s.Transforms[0].CanonicalForm(), s.Transforms[1].CanonicalForm(), s.Measures[1].Settings())
	for _, want := range []string{"mine:fog@gggggggggggggggg ", "mine:noise@eeeeeeeeeeeeeeee", "a.b:angle@eeeeeeeeeeeeeeee", "a.b:size@"} {
		if strings.Contains(before, want) || !strings.Contains(after+" ", strings.TrimSpace(want)) {
			t.Errorf("%q: before %s\nafter %s", want, before, after)
		}
	}
	resolved, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := catalog.Parse("elsewhere/study.yaml", []byte(resolved), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := again.PythonFolders(), s.PythonFolders(); len(a) != 1 || a[0] != b[0] || len(again.Python()) != len(s.Python()) {
		t.Errorf("folders %q and %q", a, b)
	}
	if err := again.HashPython(digest); err != nil {
		t.Error(err)
	}
	other := func(_, name string) string { return strings.Repeat("0", 20) }
	if err := again.HashPython(other); err == nil || !strings.Contains(err.Error(), "differs from the one recorded in the study") {
		t.Errorf("error %v for another hash", err)
	}
}

func TestPythonModelIsAFunction(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"net.py", "mine:", ":net", "mine:net()", "mine net"} {
		_, err := catalog.Parse("study.yaml", []byte(strings.Replace(pythonText, "mine:net", name, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), "package.module:function") {
			t.Errorf("error %v for %q", err, name)
		}
	}
}
