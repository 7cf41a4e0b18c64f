package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlot checks that charts are written as PDF, and that wrong arguments cause errors and no
// file.
func TestPlot(t *testing.T) {
	dir := brokenFolder(t) // holds the valid model good.onnx, which smallStudy uses by default
	// "samples: true" keeps the values of single samples, which the chart distribution shows.
	study := write(t, dir, "study.yaml", []byte(smallStudy{measures: "accuracy, distance"}.text()+"samples: true\n"))
	run, out := filepath.Join(dir, "run"), filepath.Join(dir, "fig.pdf")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	for _, chart := range []string{"depth", "bars", "heat", "distribution"} {
		if message, code := errorOutput(t, "plot", run, "--chart", chart, "-o", out); code != 0 || message != "noether: wrote "+out+"\n" {
			t.Fatalf("%s: exit %d, %q", chart, code, message)
		}
		if raw, err := os.ReadFile(out); err != nil || !bytes.HasPrefix(raw, []byte("%PDF-")) {
			t.Errorf("%s: no PDF: %v", chart, err)
		}
		os.Remove(out)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{run}, 2, "the output file is missing"},
		{[]string{run, "-o", "x.gif"}, 2, "pdf, svg, png"},
		{[]string{run, "-o", out, "--chart", "pie"}, 2, "--chart must be one of depth"},
		{[]string{run, "-o", out, "--columns", "7"}, 2, "1 or 2"},
		{[]string{run, "-o", out, "--font", "comic"}, 2, "sans or serif"},
		{[]string{run, "-o", out, "--model", "nobody"}, 1, `no score has the model "nobody"`},
		{[]string{run, "-o", out, "--chart", "parameter"}, 1, "list of numbers"},
		{[]string{run, "-o", out, "--chart", "scatter", "--x", "seis"}, 2, "--x"},
		{[]string{run, "-o", out, "--chart", "scatter", "--x", "distance.cosine"}, 1, "too few points"},
		{[]string{dir, "-o", out}, 1, "not a run folder"},
		{[]string{"-o", out}, 2, "takes"},
	} {
		code, message := call(t, append([]string{"plot"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, message, c.code, c.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q left a file", c.args)
		}
	}
}
