package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// TestAlignPoints checks that numbers are padded so that their decimal points are below each other.
func TestAlignPoints(t *testing.T) {
	t.Parallel()
	got := alignPoints([]string{"0.08255", "-12.5", "", "+3", "1e-05"})
	if want := []string{"  0.08255", "-12.5    ", "         ", " +3      ", "  1e-05  "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTableFits checks that the decimal points of a column are below each other. In a table too
// wide for the terminal, the name of a row is in a second line, shortened in the middle. A width of
// 0 stands for an output without a limit.
func TestTableFits(t *testing.T) {
	t.Parallel()
	const name = "resnet20, /features/stage3/block12/branch1/normalisation/BatchNormalization_output_0, cifar10-test-images, quarter"
	table := func() textTable {
		out := textTable{header: []string{"score", "name", "A", "B", ""}, rows: [][]string{{"distance.cosine", name, "0.08255", "0.9", "[-0.01, +0.02]"},
			{"seis.rank", "short", "125", "7.25", ""}}}
		out.align(2, 3) // the columns A and B
		return out
	}
	for _, width := range []int{0, 80, 200} {
		out := table()
		text := out.write(width, 1) // column 1 holds the names
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		points := map[int]bool{} // columns of the decimal points
		for _, line := range lines {
			if width > 0 && ansi.StringWidth(line) > width {
				t.Errorf("a line is %d characters wide in a terminal of %d: %q", ansi.StringWidth(line), width, line)
			}
			if at := strings.Index(line, "0.08255"); at >= 0 {
				points[at+len("0")] = true
			}
			if at := strings.Index(line, "125"); at >= 0 {
				points[at+len("125")] = true
			}
		}
		if len(points) != 1 {
			t.Errorf("decimal points in the columns %v, want one column:\n%s", points, text)
		}
		// A narrow table has five lines: the header, and two for each row.
		if narrow := width == 80; (len(lines) == 5) != narrow || strings.Contains(text, name) == narrow || narrow && !strings.Contains(text, "…") {
			t.Errorf("%d lines at a width of %d, want 5 only at 80, with shortened names:\n%s", len(lines), width, text)
		}
	}
}

// TestOutputFlag checks that every command whose result is a new file or folder has the flag -o or
// --out, and --output as another name for it. The error of an unknown flag suggests the nearest
// one.
func TestOutputFlag(t *testing.T) {
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
