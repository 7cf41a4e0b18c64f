package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestAlignPoints(t *testing.T) {
	t.Parallel()
	got := alignPoints([]string{"0.08255", "-12.5", "", "+3", "1e-05"})
	if want := []string{"  0.08255", "-12.5    ", "         ", " +3      ", "  1e-05  "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTableFits checks that the decimal points of a column are below each other, and that a table too
// wide for the terminal has names below its rows, shortened in the middle.
func TestTableFits(t *testing.T) {
	t.Parallel()
	const name = "resnet20, /features/stage3/block12/branch1/normalisation/BatchNormalization_output_0, cifar10-test-images, quarter"
	table := func() textTable {
		out := textTable{header: []string{"score", "of", "A", "B", ""}, rows: [][]string{{"distance.cosine", name, "0.08255", "0.9", "[-0.01, +0.02]"},
			{"seis.rank", "short", "125", "7.25", ""}}}
		out.align(2, 3)
		return out
	}
	for _, width := range []int{0, 80, 200} {
		wide := table()
		text := wide.write(width, 1)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		points := map[int]bool{}
		for _, line := range lines {
			if width > 0 && ansi.StringWidth(line) > width {
				t.Errorf("%d cells in a terminal of %d: %q", ansi.StringWidth(line), width, line)
			}
			if at := strings.Index(line, "0.08255"); at >= 0 {
				points[at+1] = true
			}
			if at := strings.Index(line, "125"); at >= 0 {
				points[at+3] = true
			}
		}
		if len(points) != 1 {
			t.Errorf("decimal points in the columns %v:\n%s", points, text)
		}
		// A narrow table has five lines: the header, and two for each row.
		if narrow := width == 80; (len(lines) == 5) != narrow || strings.Contains(text, name) == narrow || narrow && !strings.Contains(text, "…") {
			t.Errorf("%d lines at a width of %d:\n%s", len(lines), width, text)
		}
	}
}

// TestFlagOfOutput checks that every command which writes a file or a folder has the flag -o, --out,
// that --output is another name of it, and that the error of an unknown flag names the nearest one.
func TestFlagOfOutput(t *testing.T) {
	t.Parallel()
	root := newRoot()
	for _, name := range []string{"demo", "init", "run", "plot", "export", "train", "invert", "grad", "vary", "cluster submit"} {
		c, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		flag := c.Flags().ShorthandLookup("o")
		if flag == nil || flag.Name != "out" || c.Flags().Lookup("output") != flag {
			t.Errorf("%s: the flag -o is %+v, want --out", name, flag)
		}
	}
	for args, want := range map[string]string{"run s.yaml --sahrd 1/2": `did you mean "--shard"?`, "run s.yaml --al": `did you mean "--all"?`, "plot r --nothing-like-it": "unknown flag: --nothing-like-it"} {
		if err := execute(t.Context(), strings.Fields(args)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
