package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{measures: "accuracy, distance"}.study()))
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, run := range []string{a, b} {
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Fatal(message)
		}
	}
	text, err := output(t, "diff", a, b, "--all", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Difference struct{ Value float64 }
		Beyond     bool
	}
	if err := json.Unmarshal([]byte(text), &lines); err != nil || len(lines) == 0 {
		t.Fatalf("%v: %.300s", err, text)
	}
	for _, l := range lines {
		if l.Difference.Value != 0 || l.Beyond {
			t.Errorf("a run differs from itself: %+v", l)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{a, b, "--fail-if", "accuracy.clean < -0.02"}, 0, ""},
		{[]string{a, b, "--fail-if", "accuracy.clean > -1!"}, 1, "accuracy.clean > -1!"},
		{[]string{a, b, "--fail-if", "seis.equivariance < 0"}, 1, "there are"},
		{[]string{a, b, "--fail-if", "seis < 0"}, 2, "MEASURE.STATISTIC"},
		{[]string{a, b, "--models", "x"}, 2, "A=B"},
		{[]string{a, b, "--models", "x=y"}, 1, "has"},
		{[]string{a, dir}, 1, "no run folder"},
		{[]string{a}, 2, "wants"},
	} {
		code, message := call(t, append([]string{"diff"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args[1:], code, message, c.code, c.want)
		}
	}
}

func TestCorrelateNamesWhatIsWrong(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{measures: "accuracy"}.study()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{run}, 1, "no score is effective-invariance.ei; there are accuracy.clean"},
		{[]string{run, "--x", "accuracy.moved"}, 1, "too few points"},
		{[]string{run, "--x", "accuracy"}, 2, "--x"},
		{[]string{run, "--by", "layer"}, 2, "--by is model or data"},
		{[]string{dir}, 1, "no run folder"},
	} {
		code, message := call(t, append([]string{"correlate"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args[1:], code, message, c.code, c.want)
		}
	}
}
