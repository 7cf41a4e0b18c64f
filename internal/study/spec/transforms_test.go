package spec

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/transform"
)

// decodeTransform decodes an entry of transforms.
func decodeTransform(t *testing.T, src string) (Transform, error) {
	t.Helper()
	n, err := config.Parse("s.yaml", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out Transform
	if err := config.Decode(n, &out); err != nil {
		return out, err
	}
	return out, out.Decode(transform.Kinds())
}

// TestTransformForms checks the forms in which a study can write a transformation. A transformation
// has a cell for each listed value, or combination of listed values, of its parameters. Values from
// a range are drawn per sample, or per trial (repetition of all draws), and it acts on inputs or on
// activations.
func TestTransformForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, name, per, on string
		parameters         string // of the cells, joined by |
	}{
		{"grayscale", "grayscale", "sample", "input", ""},
		{"{name: gray, grayscale: {}}", "gray", "sample", "input", ""},
		{"{name: gray, grayscale: }", "gray", "sample", "input", ""},
		{"{rotate: 30}", "rotate", "sample", "input", ""},
		{"{name: quarter, rotate: {values: [90, 180, 270]}}", "quarter", "sample", "input", "90|180|270"},
		{"{name: tilt, rotate: [-15, 15], per: trial, on: activations}", "tilt", "trial", "activations", ""},
		{"{name: tilt, rotate: {range: [-15, 15], interpolation: nearest}}", "tilt", "sample", "input", ""},
		{"{name: m, flip: {values: [horizontal, vertical]}}", "m", "sample", "input", "horizontal|vertical"},
		{"{name: a, affine: {rotate: [-15, 15], translate: [-0.05, 0.05], scale: {values: [0.9, 1.1]}}}", "a", "sample", "input", "0.9|1.1"},
		{"{name: s, sequence: [{rotate: {values: [10, 20]}}, {gaussian-blur: {values: [1, 2]}}, grayscale]}", "s", "sample", "input", "10,1|10,2|20,1|20,2"},
	} {
		got, err := decodeTransform(t, c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		var parameters []string
		for _, cell := range got.Cells {
			parameters = append(parameters, cell.Parameter)
		}
		if got.Name != c.name || got.Per != c.per || got.On != c.on || strings.Join(parameters, "|") != c.parameters {
			t.Errorf("%s gives %q %s %s %q, want %q %s %s %q", c.src, got.Name, got.Per, got.On, parameters, c.name, c.per, c.on, c.parameters)
		}
	}
}

// TestDifferentTransformsHaveDifferentKeys checks the keys by which the results of transformations
// are identified in a run folder.
func TestDifferentTransformsHaveDifferentKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, src := range []string{"{rotate: 30}", "{rotate: 31}", "{rotate: [30, 31]}", "{scale: 30}", "{rotate: {angle: 30, interpolation: nearest}}",
		"{sequence: [{rotate: 30}]}", "{sequence: [{rotate: 30}, {rotate: 30}]}"} {
		tr, err := decodeTransform(t, src)
		if err != nil {
			t.Fatal(err)
		}
		key := CanonicalJSON(tr.Cells[0].Canonical)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same key %s", src, other, key)
		}
		seen[key] = src
	}
}

// TestTransformVersionsAreInKeys checks that a key ends with the version of a transformation, which
// is raised when its output changes. Version 1 is left out, so that keys from before there were
// versions stay valid.
func TestTransformVersionsAreInKeys(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"{rotate: 30}":                                     `["rotate",{"angle":[30,30]}]`,
		"{corrupt: {kind: fog, severity: 2}}":              `["corrupt",{"kind":"fog","severity":[2,2]}]`,
		"{corrupt: {kind: jpeg-compression, severity: 2}}": `["corrupt",{"kind":"jpeg-compression","severity":[2,2]},2]`,
		"{sequence: [{rotate: 30}]}":                       `[["rotate",{"angle":[30,30]}]]`,
		"{sequence: [{rotate: 30}, {corrupt: {kind: jpeg-compression, severity: 2}}]}": `[["rotate",{"angle":[30,30]}],["corrupt",{"kind":"jpeg-compression","severity":[2,2]},2]]`,
	} {
		tr, err := decodeTransform(t, src)
		if err != nil {
			t.Fatal(err)
		}
		if got := CanonicalJSON(tr.Cells[0].Canonical); got != want {
			t.Errorf("%s has the key %s, want %s", src, got, want)
		}
	}
}

func TestTransformErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"{rotat: 30}", `unknown transformation "rotat"; did you mean "rotate"?`},
		{"{name: x}", "the transformation is missing"},
		{"{rotate: 30, scale: 2}", "write sequence"},
		{"{rotate: {anlge: 3}}", `did you mean "angle"?`},
		{"{rotate: {values: []}}", "values is a list"},
		{"{rotate: {values: [90, 90]}}", "occurs twice"},
		{"{rotate: [1, 2, 3]}", "two ends"},
		{"{rotate: [15, -15]}", "has its ends exchanged"},
		{"{rotate: left}", "must be a number"},
		{"{scale: 0}", "above 0"},
		{"{rotate: 400}", "angle must be between -360 and 360 degrees, not 400"},
		{"{flip: sideways}", "horizontal or vertical"},
		{"{rotate: 3, per: epoch}", `unknown per "epoch"`},
		{"{grayscale: {}, on: activations}", "cannot be applied to activations"},
		{"{affine: 3}", "no short form"},
		{"{sequence: []}", "a sequence is a list"},
		{"[1]", "a transformation is a mapping"},
	} {
		_, err := decodeTransform(t, c.src)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "s.yaml:1:") {
			t.Errorf("%s gives %v, want %q with its position", c.src, err, c.want)
		}
	}
}
