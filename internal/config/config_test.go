package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The types inner and outer are examples of settings in YAML. The tag key names the key of a field;
// enum lists the allowed texts.
type inner struct {
	Rate float64 `key:"rate" default:"0.5" min:"0" max:"1"`
	Mode string  `key:"mode" enum:"fast|slow" default:"fast"`
}

type outer struct {
	Name  string            `key:"name,required" doc:"what it is called"`
	N     int               `key:"limit" min:"1" default:"7"`
	Seed  uint64            `key:"seed"`
	Files []string          `key:"files"`
	Tags  map[string]string `key:"tags"`
	In    inner             `key:"inner"`
	Ptr   *inner            `key:"optional"`
	On    bool              `key:"on"`
}

var vars = map[string]string{"SET": "value"} // of ${SET} in files

func TestDecode(t *testing.T) {
	t.Parallel()
	src := "name: a\nfiles: [x, '${SET}/y', '${UNSET:-z}']\ntags: &t {depth: 44}\nseed: 3\ninner: {rate: 1}\noptional:\non: true\n"
	n, err := Parse("s.yaml", []byte(src), vars)
	if err != nil {
		t.Fatal(err)
	}
	var got outer
	if err := Decode(n, &got); err != nil {
		t.Fatal(err)
	}
	want := outer{Name: "a", N: 7, Seed: 3, Files: []string{"x", "value/y", "z"}, Tags: map[string]string{"depth": "44"},
		In: inner{1, "fast"}, Ptr: &inner{0.5, "fast"}, On: true}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDecodeSingleValueForList(t *testing.T) {
	t.Parallel()
	n, err := Parse("s.yaml", []byte("name: a\nfiles: one"), vars)
	if err != nil {
		t.Fatal(err)
	}
	var got outer
	if err := Decode(n, &got); err != nil || len(got.Files) != 1 || got.Files[0] != "one" {
		t.Errorf("the files are %q, want one; error %v", got.Files, err)
	}
}

// TestShortForm checks that text in place of a mapping is the value of the key that is tagged
// short.
func TestShortForm(t *testing.T) {
	t.Parallel()
	type folder struct {
		Path string `key:"path,required" short:"true"`
		Deep bool   `key:"deep" default:"true"`
	}
	for _, src := range []string{"photos", "{path: photos}", "path: photos\ndeep: true"} {
		n, err := Parse("s.yaml", []byte(src), vars)
		if err != nil {
			t.Fatal(err)
		}
		var got folder
		if err := Decode(n, &got); err != nil || got != (folder{"photos", true}) {
			t.Errorf("%q gives %+v, want the folder photos; error %v", src, got, err)
		}
	}
}

func TestErrorsNameThePosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src, want string }{
		{"unknown key", "name: a\nlimt: 3\n", `s.yaml:2:1: unknown key "limt"; did you mean "limit"?`},
		{"nested unknown key", "name: a\ninner:\n  rat: 3\n", `s.yaml:3:3: unknown key "rat"; did you mean "rate"?`},
		{"far from any key", "name: a\nzzzzzzzz: 3\n", `known are name, limit`},
		{"wrong type", "name: a\nlimit: many\n", `s.yaml:2:8: expected a whole number, not "many"`},
		{"list for text", "name: [a]\n", `expected text, not a list`},
		{"below the bound", "name: a\nlimit: 0\n", `s.yaml:2:8: limit is 0; it must be at least 1`},
		{"above the bound", "name: a\ninner: {rate: 2}\n", `must be at most 1`},
		{"not finite", "name: a\ninner: {rate: .nan}\n", `not a finite number`},
		{"enum", "name: a\ninner: {mode: fats}\n", `unknown mode "fats"; did you mean "fast"?`},
		{"missing key", "limit: 3\n", `s.yaml:1:1: the key "name" is missing`},
		{"twice", "name: a\nname: b\n", `name`},
		{"variable", "name: ${NONE}\n", `the variable NONE is not set`},
		{"empty", "", `empty`},
		{"comment only", "# nothing\n", `empty`},
		{"two documents", "name: a\n---\nname: b\n", `one file holds one`},
		{"not a mapping", "- a\n", `expected a mapping, not a list`},
		{"no YAML", "name: [a\n", `s.yaml:`},
		{"alias without anchor", "name: *x\n", `s.yaml:1:`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, err := Parse("s.yaml", []byte(c.src), vars)
			if err == nil {
				err = Decode(n, new(outer))
			}
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %s\nwant %s, in one line", err, c.want)
			}
		})
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	t.Parallel()
	n, err := Parse("s.yaml", []byte("a: 1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := n.Get("a").Errorf("where: %w", fs.ErrNotExist)
	if !errors.Is(got, fs.ErrNotExist) || got.Error() != "s.yaml:1:4: where: file does not exist" {
		t.Errorf("error %v, want its position and its cause", got)
	}
	if got := n.Errorf("nothing %s", "else"); errors.Unwrap(got) != nil {
		t.Errorf("%v has a cause", got)
	}
}

func TestSchemaNamesEveryKey(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(Schema(reflect.TypeFor[outer]()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name"`, `"limit"`, `"optional"`, `"rate"`, `"enum":["fast","slow"]`, `"required":["name"]`, "what it is called"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the schema lacks %s: %s", want, raw)
		}
	}
}

// FuzzDecode checks that no file causes a panic, and that errors have one line.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: a\ninner: {rate: 1}\n"))
	f.Add([]byte("name: &a [*a]\n"))
	f.Add([]byte("<<: {name: x}\nfiles: - a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse("f", data, vars)
		if err == nil {
			err = Decode(n, new(outer))
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	})
}

// TestEncodeReadsBack checks that a node that was changed has the same content after Encode and
// Parse.
func TestEncodeReadsBack(t *testing.T) {
	t.Parallel()
	n, err := Parse("s.yaml", []byte("name: ${SET}\nlimit: 5\ninner: {rate: 0.25}\nfiles: ['a: b', \"1\"]\ntags: {x: 'true'}\n"), vars)
	if err != nil {
		t.Fatal(err)
	}
	n.Set("name", "changed")
	n.Pairs[1].Value = &Node{Kind: Int, Int: 9, Text: "9"} // limit again, the field N
	raw, err := Encode(n)
	if err != nil {
		t.Fatal(err)
	}
	var got, want outer
	back, err := Parse("t.yaml", raw, vars)
	if err == nil {
		err = Decode(back, &got)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	if err := Decode(n, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || got.N != 9 {
		t.Error(d, string(raw))
	}
}

// TestNumbersKeepTheirText checks that Encode writes numbers as they were written.
func TestNumbersKeepTheirText(t *testing.T) {
	t.Parallel()
	n, err := Parse("s.yaml", []byte("a: [0.50, +90, 0x10, 1e-05, 1E3, 1.0, -0]\n"), vars)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Encode(n)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("t.yaml", raw, vars)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	for i, item := range n.Get("a").Items {
		got := back.Get("a").Items[i]
		if _, err := item.Number(); err != nil || got.Text != item.Text || got.Kind != item.Kind || got.Float != item.Float {
			t.Errorf("%+v becomes %+v (%v)", item, got, err)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	t.Parallel()
	n, err := Parse("s.yaml", []byte("- &a {name: a, limit: 5}\n- &b {seed: 3, limit: 6}\n- {<<: *a, name: c}\n- {name: d, <<: [*b, *a]}\n"), vars)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]outer{2: {Name: "c", N: 5}, 3: {Name: "d", N: 6, Seed: 3}} {
		var got outer
		if err := Decode(n.Items[i], &got); err != nil || got.Name != want.Name || got.N != want.N || got.Seed != want.Seed {
			t.Errorf("item %d is %+v, error %v; want %+v", i, got, err, want)
		}
	}
}

// TestAliasesOfAliasesEndInAnError parses a short file whose aliases expand to 10^12 values.
func TestAliasesOfAliasesEndInAnError(t *testing.T) {
	t.Parallel()
	src := "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
	for i := 1; i < 12; i++ {
		src += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	if _, err := Parse("s.yaml", []byte(src), vars); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error %v, want one with %q", err, "too large")
	}
}

// TestVariableTypes checks that the value of a variable has the type that it would have in the
// file, also in quotes, unless it is a part of a text.
func TestVariableTypes(t *testing.T) {
	t.Parallel()
	n, err := Parse("f", []byte("a: ${A}\nb: {b: \"${A}\", c: '12'}\nc: ${B:-0.5}\nd: ${C:-true}\ne: ${A}/x\nf: ${D:-nan}\n"), map[string]string{"A": "12"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]Kind{"a": Int, "c": Float, "d": Bool, "e": String, "f": String} {
		if got := n.Get(key).Kind; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for _, v := range []*Node{n.Get("a"), n.Find("b", "b")} {
		var number int
		var text string
		if err := errors.Join(Decode(v, &number), Decode(v, &text)); err != nil || number != 12 || text != "12" {
			t.Errorf("%d, %q, %v; want 12", number, text, err)
		}
	}
	if got := n.Find("b", "c").Kind; got != String {
		t.Errorf("'12' is %v, want %v", got, String)
	}
}

// TestVariablesComeBeforeTheEnvironment checks that a variable has the value given to Parse, or
// else that of the environment, or else its default.
func TestVariablesComeBeforeTheEnvironment(t *testing.T) {
	t.Setenv("NOETHER_TEST_A", "environment")
	t.Setenv("NOETHER_TEST_B", "environment")
	n, err := Parse("f", []byte("a: ${NOETHER_TEST_A}\nb: ${NOETHER_TEST_B}\nc: ${NOETHER_TEST_C:-default}\n"), map[string]string{"NOETHER_TEST_A": "given"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "given", "b": "environment", "c": "default"} {
		if got := n.Get(key).Text; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestFileTooLong checks that a file that is too large, such as a model, or that never ends is
// rejected without being read to its end.
func TestFileTooLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	data, err := ReadFile(path)
	if err != nil || len(data) != maxBytes+1 {
		t.Fatalf("%d bytes, want %d; error %v", len(data), maxBytes+1, err)
	}
	if _, err := Parse(path, data, nil); err == nil || !strings.Contains(err.Error(), "must not be larger than 16 MiB") {
		t.Errorf("error %v, want one with %q", err, "must not be larger than 16 MiB")
	}
}

func TestBinaryFile(t *testing.T) {
	t.Parallel()
	if _, err := Parse("model.onnx", []byte("name: \xff\xfe\x08"), nil); err == nil || err.Error() != "model.onnx: not a text file: settings are YAML in UTF-8" {
		t.Errorf("error %v", err)
	}
}
