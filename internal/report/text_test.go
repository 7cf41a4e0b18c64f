package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0.000", 1: "1.000", 0.91234: "0.912", -0.02: "-0.020", 0.0001: "1.0e-04", 9.9994: "9.999", 12.3456: "12.35", 140: "140",
		8000: "8,000", 567.89: "567.9", 1234.56: "1,235", -1234.56: "-1,235", 1e7: "10,000,000", 123456.7: "123,457", 1.23456e12: "1.235e+12", math.Inf(1): "+Inf",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%g) = %q, want %q", v, got, want)
		}
	}
	if got := Number(nan); got != "–" {
		t.Errorf("Number(NaN) = %q, want %q", got, "–")
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestShorten removes the suffix _output_0 of exported tensors, then the middle of a name, until it
// has the given width in columns of a terminal.
func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"conv1", 10, "conv1"}, {"/layer1/Relu_output_0", 14, "/layer1/Relu"}, {"/layer1/layer1.0/Relu", 12, "/laye…0/Relu"}, {"a\x1bb", 6, `a\x1bb`},
		{"AA\u0600Aः", 4, "A…"}, // U+0600, A and U+0903 form one character
	} {
		if got := Shorten(c.name, c.width); got != c.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.name, c.width, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name, width := rapid.String().Draw(t, "name"), rapid.IntRange(3, 40).Draw(t, "width")
		if got := Shorten(name, width); ansi.StringWidth(got) > width {
			t.Fatalf("Shorten(%q, %d) = %q takes %d columns of a terminal", name, width, got, ansi.StringWidth(got))
		}
	})
}

// Fold fills lines as far as possible, and breaks a word only if it is longer than a line.
func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}}, {"one two", 7, []string{"one two"}}, {"one  two", 6, []string{"one", "two"}},
		{"of vit-tiny-patch16 or", 16, []string{"of", "vit-tiny-patch16", "or"}},
		{"in /models/vit-tiny/model.onnx", 16, []string{"in", "/models/vit-", "tiny/model.onnx"}},
	} {
		if got := Fold(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("Fold(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z/-]{1,12} ){0,9}[a-z長-]{1,6}`).Draw(t, "text")
		lines := Fold(text, 12)
		if got := strings.Join(lines, " "); got != text {
			t.Fatalf("the lines of %q are %q, which is another text", text, lines)
		}
		for i, l := range lines {
			if ansi.StringWidth(l) > 12 {
				t.Fatalf("%q takes more than 12 columns of a terminal", l)
			}
			if i > 0 && ansi.StringWidth(lines[i-1]+" "+strings.Fields(l)[0]) <= 12 {
				t.Fatalf("%q would have fitted on the line before", l)
			}
		}
	})
}

// TestTrend checks Spearman's correlation between the depths 0, 1, ... of layers and their values
// against scipy.stats.spearmanr. It is 0 for constant values and for fewer than three layers.
// depthRows returns a score with each value, for layers of increasing depth.
func TestTrend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{5, 6, 7, 8, 7}, 0.8207826816681233}, {[]float64{5, 4, 3, 2, 1}, -1}, {[]float64{1, 1, 2, 0, 1}, -0.22360679774997896},
		{[]float64{1, 1, 1, 1, 1}, 0}, {[]float64{1, 2}, 0},
	} {
		if got := (Series{Rows: depthRows("equivariance", c.values...)}).trend(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("the trend of %v is %g, want %g", c.values, got, c.want)
		}
	}
}
