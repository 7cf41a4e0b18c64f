package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/testdata"
)

// TestFailuresAndPolicy runs a study with a policy, judges the run again, and lists its failures. The
// network is a trained one, since a model that is no better than chance cannot pass.
func TestFailuresAndPolicy(t *testing.T) {
	net, batch := testdata.Path(t, "models", "resnet20-cifar10.onnx"), testdata.Path(t, "cifar10", "test_batch.bin")
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		return write(t, dir, name, []byte(text))
	}
	study := file("study.yaml", `name: s
data: [{name: cifar10, cifar10: `+batch+`, limit: 120}]
models: [{name: one, onnx: `+net+`, preprocess: cifar10, layers: output}, {name: copy, onnx: `+net+`, preprocess: cifar10, layers: output}]
transforms: [{name: tilt, rotate: {values: [20, 40]}}]
measures: [accuracy]
by: [label]
`)
	same := file("same.yaml", "use: a copy\nmodels: [copy]\nreference: one\ntransforms: {tilt: 40}\nloss: 0.1\n")
	strict := file("strict.yaml", "use: perfect\ntransforms: {tilt: 40}\nleast: 0.99\n")
	open := file("open.yaml", "use: a copy\nmodels: [copy]\nreference: one\ntransforms: {tilt: 40}\nloss: 0.1\ngroups: [label]\n")
	run, junit, sarif := filepath.Join(dir, "run"), filepath.Join(dir, "out.xml"), filepath.Join(dir, "out.sarif")
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"run", study, "-o", run, "--policy", same, "--junit", junit, "--sarif", sarif}, 0, "copy: PASS. 3 of 3 claims hold. All hold up to tilt 40."},
		{[]string{"policy", run, same}, 0, "loss of accuracy.moved against one <= 0.1"},
		{[]string{"policy", run, strict}, gateExit, "one: FAIL"},
		{[]string{"policy", run, open}, undecidedExit, "copy: NOT ENOUGH DATA"},
		{[]string{"policy", run, file("wrong.yaml", "use: x\nloss: 0.1\ntransforms: {fog: 1}\n")}, 1, ""},
		{[]string{"run", study, "--junit", junit}, 2, ""},
		{[]string{"run", study, "--policy", same, "--shard", "1/2"}, 2, ""},
		{[]string{"failures", run, "--limit", "3"}, 0, "class pair "},
		{[]string{"failures", run, "--kind", "right"}, 2, ""},
		{[]string{"failures", run, "--group", "label"}, 2, ""},
		{[]string{"failures", dir}, 1, ""},
		{[]string{"failures", run, "--group", "label=zebra"}, 1, ""},
		{[]string{"failures", run, "--group", "lable=cat"}, 1, ""},
		{[]string{"failures", run, "--model", "copi"}, 1, ""},
	} {
		out, err := output(t, c.args...)
		if code := exitCode(err); code != c.code || !strings.Contains(out, c.out) {
			t.Errorf("%s: code %d, want %d with %q\n%s", c.args, code, c.code, c.out, out)
		}
	}
	for path, want := range map[string]string{junit: `tests="3" failures="0" errors="0"`, sarif: `"kind": "pass"`} {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s %v, want %q", path, text, err, want)
		}
	}

	// The report keeps the verdict of the first policy, until another is asked for.
	for _, c := range []struct {
		args []string
		use  string
	}{{[]string{"policy", run, strict}, "same.yaml: a copy"}, {[]string{"policy", run, strict, "--report"}, "strict.yaml: perfect"}} {
		if _, err := output(t, c.args...); exitCode(err) != gateExit {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(run, policy.SummaryFile))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := policy.ParseSummary(data); err != nil || s.Name() != c.use {
			t.Errorf("after %s the report has the verdict of %q, want %q (%v)", c.args, s.Name(), c.use, err)
		}
	}

	all, err := output(t, "failures", run, "--json", "--model", "copy", "--kind", "broken")
	var listed struct {
		Failures []struct{ Model, Kind, Path, Label string }
		Groups   []struct{ Model string }
	}
	if err == nil {
		err = json.Unmarshal([]byte(all), &listed)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Failures) == 0 || len(listed.Groups) == 0 {
		t.Fatal("nothing is listed")
	}
	paths := map[string]bool{}
	for _, f := range listed.Failures {
		if f.Model != "copy" || f.Kind != "broken" {
			t.Errorf("listed: %+v", f)
		}
		if f.Label == listed.Failures[0].Label {
			paths[f.Path] = true
		}
	}
	text, err := output(t, "failures", run, "--model", "copy", "--kind", "broken", "--paths", "--group", "label="+listed.Failures[0].Label)
	if got := strings.Count(text, "\n"); err != nil || got != len(paths) {
		t.Errorf("%d paths, want %d (%v)", got, len(paths), err)
	}
}

// TestPolicyNamesWhatTheStudyLacks checks that run stops before it starts, and says what was meant.
func TestPolicyNamesWhatTheStudyLacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		return write(t, dir, name, []byte(text))
	}
	study := file("study.yaml", `name: s
data: [{name: street, images: photos}]
models: [{name: float, onnx: float.onnx}, {name: int8, onnx: int8.onnx}]
transforms: [{name: tilt, rotate: {values: [20]}}]
measures: [accuracy]
by: [camera]
`)
	for text, want := range map[string]string{
		"reference: flaot\nloss: 0.1":                 `the model "flaot" (did you mean "float"?); the study has float, int8`,
		"models: [int16]\nleast: 0.1":                 `the model "int16"`,
		"data: [stret]\nleast: 0.1":                   `the data "stret" (did you mean "street"?)`,
		"transforms: {titl: 1}\nleast: 0.1":           `the transformation "titl" (did you mean "tilt"?); the study has tilt`,
		"groups: [camrea]\nleast: 0.1":                `the property "camrea" (did you mean "camera"?)`,
		"keep: ['accuracy.moved@titl >= 0.5']":        `the transformation "titl"`,
		"keep: ['accuracy.moevd >= 0.5']":             `accuracy has no statistic "moevd"; did you mean "moved"?`,
		"keep: ['effective-invariance.ei >= 0.5']":    "effective-invariance, which the study does not measure; known are accuracy",
		"score: dense-accuracy.moved-map\nleast: 0.5": "dense-accuracy, which the study does not measure",
	} {
		policy := file("policy.yaml", "use: x\n"+text+"\n")
		_, err := output(t, "run", study, "-o", filepath.Join(dir, "run"), "--policy", policy)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "policy.yaml") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if exists(filepath.Join(dir, "run")) {
		t.Error("the run has started")
	}
}
