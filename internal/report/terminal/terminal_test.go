package terminal

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// printed returns the text that a terminal shows for scores.
func printed(t rapid.TB, rows []scores.Row, rec scores.Record, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, rows, rec, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTerminal prints a generated run in full (All): scores of predictions, and of layers by the
// measure SEIS, then where a measure was skipped (a place is a layer of a model), and the warnings.
// The run's example of a reason, "the layer has no space", means that the layer has no positions.
func TestTerminal(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 3, Transforms: 2}.Rows()
	text := printed(t, rows, rec, Options{Width: 120, All: true})
	for _, want := range []string{
		"EFFECTIVE-INVARIANCE · cifar10 · n = 2,000",
		"model     transform  ei ↑",
		"SEIS equivariance ↑ · cifar10 · 3 layers · n = 32,000 to 96,000",
		"model     transform  best layer",
		"- seis: the layer has no space (2 places: resnet20 logits, resnet56 logits)",
		"- pooled from 112 x 112 to 56 x 56 positions (10 scores: seis resnet20 /layer1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("plain text contains escape sequences")
	}
	if !strings.Contains(printed(t, rows, rec, Options{Width: 120, All: true, Colour: true}), "\x1b[1m") {
		t.Error("coloured text has no bold")
	}
}

// TestMatrix checks that the overview is a matrix of models by transformations for each measure,
// and that one too wide for the terminal is divided. The intervals of ei contain the null, the
// value that chance alone gives.
func TestMatrix(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 3, Transforms: 12}.Rows()
	for i := range rows {
		if rows[i].Statistic == "ei" {
			rows[i].Value, rows[i].Low, rows[i].High, rows[i].Null = 0.25, 0.2, 0.3, 0.22
		}
	}
	wide, narrow := printed(t, rows, rec, Options{Width: 300}), printed(t, rows, rec, Options{Width: 80})
	if n := strings.Count(wide, "0.250* [0.200, 0.300]"); n != 24 {
		t.Errorf("%d scores with the mark * (no better than chance), want 24 of 2 models and 12 transformations, in\n%s", n, wide)
	}
	if n := strings.Count(narrow, "0.250*"); n != 24 {
		t.Errorf("%d scores with the mark *, want 24 of 2 models and 12 transformations, in\n%s", n, narrow)
	}
	if !strings.Contains(wide, "deepest layer") || !strings.Contains(wide, "--all") || strings.Contains(wide, "best layer") {
		t.Errorf("the overview does not name the deepest layer and --all, or names the best layer:\n%s", wide)
	}
}

// TestMatrixWithoutDirection checks that a matrix of a statistic of which neither end is better has
// no arrow (↑ or ↓) and no mark * (no better than chance).
// TestCurves checks that scores under a transformation with numbers as values are shown as a curve,
// of many values some, before the means of others.
func TestCurves(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	add := func(transform, parameter string, value float64) {
		rows = append(rows, scores.Row{Model: "m", Data: "d", Transform: transform, Parameter: parameter, Depth: -1, Measure: "effective-invariance",
			Statistic: "ei", Value: value, Low: value - 0.01, High: value + 0.01, Null: math.NaN(), N: 10})
	}
	for angle := range 14 {
		add("turn", fmt.Sprint(10*angle), 0.9-0.05*float64(angle))
	}
	add("turn", "", 0.575)
	add("gray", "", 0.6)
	var b strings.Builder
	if err := Write(&b, rows, scores.Record{Study: "s"}, Options{Width: 200}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	curve, mean := strings.Index(text, "under turn"), strings.Index(text, "gray")
	if curve < 0 || mean < curve || !strings.Contains(text, "mean of 14") || !strings.Contains(text, "0.250 [0.240, 0.260]") || strings.Contains(text, "0.850") {
		t.Errorf("want seven of the values under turn from the first to the last, then gray:\n%s", text)
	}
}

func TestMatrixWithoutDirection(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 3, Transforms: 2}.Rows()
	row := rows[0]
	row.Measure, row.Statistic, row.Value, row.Low, row.High, row.Null = "informativeness", "r2", 0.8, 0.75, 0.85, 0.02
	text := printed(t, []scores.Row{row}, rec, Options{Width: 120})
	if !strings.Contains(text, "\nR² · ") || !strings.Contains(text, "0.800 [0.750, 0.850]") {
		t.Errorf("want R² without an arrow and 0.800 without a mark in\n%s", text)
	}
}

// TestBestAndWorst checks that for a distance the layer with the lowest value is the best.
func TestBestAndWorst(t *testing.T) {
	t.Parallel()
	at := scores.Row{Model: "m", Transform: "t", Measure: "distance", Statistic: "cosine", Low: nan, High: nan, Null: nan, N: 5}
	near, far := at, at
	near.Layer, near.Depth, near.Value = "near", 1, 0.1
	far.Layer, far.Depth, far.Value = "far", 2, 0.7
	text := printed(t, []scores.Row{far, near}, scores.Record{Measures: reporttest.Measures()}, Options{All: true})
	var row string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "0.100") {
			row = line
		}
	}
	if fields := strings.Fields(row); strings.Join(fields, " ") != "0.100 near 0.700 far" {
		t.Errorf("the row is %q, want 0.100 near and 0.700 far, in\n%s", row, text)
	}
}

// TestTiesAreNoRanking checks that layers with equal values are not named as best and worst, and
// that statistics which depend on a layer's scale are left out.
func TestTiesAreNoRanking(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i, layer := range []string{"first", "second"} {
		for _, statistic := range []string{"cosine", "l2"} {
			rows = append(rows, scores.Row{Model: "m", Transform: "t", Layer: layer, Depth: i, Measure: "distance", Statistic: statistic,
				Value: 0.5, Low: nan, High: nan, Null: 1, N: 5})
		}
	}
	text := printed(t, rows, scores.Record{Measures: reporttest.Measures()}, Options{All: true})
	if !strings.Contains(text, "0.500 at all 2 layers  –            1.000") || strings.Contains(text, "first") || strings.Contains(text, "DISTANCE l2") {
		t.Errorf("want 0.500 at all 2 layers, and neither the name of one nor DISTANCE l2, in\n%s", text)
	}
}

// TestNullOfPredictions checks that a table of several statistics shows the null (what chance alone
// gives) of one of them, and says of which.
func TestNullOfPredictions(t *testing.T) {
	t.Parallel()
	row := scores.Row{Model: "m", Transform: "t", Depth: scores.NoDepth, Measure: "prediction-divergence", Low: nan, High: nan, N: 5}
	js, l2 := row, row
	js.Statistic, js.Value, js.Null = "js", 0.125, 0.25
	l2.Statistic, l2.Value, l2.Null = "l2", 0.5, 0.75
	text := printed(t, []scores.Row{js, l2}, scores.Record{Measures: reporttest.Measures()}, Options{All: true})
	if !strings.Contains(text, "null of js") || !strings.Contains(text, "0.250") || strings.Contains(text, "0.750") {
		t.Errorf("want the null of js, 0.250, and not that of l2, 0.750, in\n%s", text)
	}
}

// TestTerminalKeepsOrder checks that a transformation with a list of values keeps its position in
// the study, although its mean is among the last scores of a run.
func TestTerminalKeepsOrder(t *testing.T) {
	t.Parallel()
	at := func(transform, parameter string) scores.Row {
		return scores.Row{Model: "m", Data: "d", Transform: transform, Parameter: parameter, Measure: "effective-invariance", Statistic: "ei", Value: 0.5, Low: nan, High: nan, Null: nan, N: 5}
	}
	text := printed(t, []scores.Row{at("gray", ""), at("turn", "15"), at("turn", "30"), at("blur", ""), at("turn", "")}, scores.Record{Measures: reporttest.Measures()}, Options{All: true})
	var order []string
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, " 0.500\n") && !strings.HasPrefix(line, "m ") {
			order = append(order, strings.Fields(line)[0])
		}
	}
	if got := strings.Join(order, " "); got != "gray turn blur" {
		t.Errorf("the rows are of %s, want gray, turn, blur, in\n%s", got, text)
	}
}

// TestTerminalFits checks that no line is wider than the given width, for runs of any shape, and
// that no control character of a name reaches the terminal.
func TestTerminalFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := reporttest.FakeRun{
			Models: rapid.SampledFrom([]int{1, 2, 9}).Draw(t, "models"), Layers: rapid.SampledFrom([]int{1, 2, 20}).Draw(t, "layers"),
			Transforms: rapid.IntRange(1, 3).Draw(t, "transforms"), Data: rapid.IntRange(1, 2).Draw(t, "data"),
			Unfinished: rapid.Bool().Draw(t, "unfinished"),
		}
		if rapid.Bool().Draw(t, "long names") {
			// The escape sequence would set the title of the window.
			f.NameOf = func(kind string, i int) string { return strings.Repeat("長い"+kind+"\x1b]0;x\a", 5) + fmt.Sprint(i) }
		}
		rows, rec := f.Rows()
		width := rapid.IntRange(80, 200).Draw(t, "width")
		for line := range strings.Lines(printed(t, rows, rec, Options{Width: width, All: rapid.Bool().Draw(t, "all")})) {
			line = strings.TrimSuffix(line, "\n")
			if ansi.StringWidth(line) > width {
				t.Fatalf("a line has %d columns in a terminal of %d: %q", ansi.StringWidth(line), width, line)
			}
			if strings.ContainsAny(line, "\x1b\a") {
				t.Fatalf("control characters in %q", line)
			}
		}
	})
}

func TestTerminalOfNoScores(t *testing.T) {
	t.Parallel()
	if text := printed(t, nil, scores.Record{Study: "s", Measures: reporttest.Measures()}, Options{All: true}); !strings.Contains(text, "There are no scores yet.") {
		t.Errorf("an empty run prints %q, want that there are no scores yet", text)
	}
}

// A measure whose scores all have factors (properties of samples) is shown by factor. If there are
// scores over all samples, those of single classes are not shown.
func TestTerminalOfFactors(t *testing.T) {
	t.Parallel()
	row := func(measure, statistic, factor string, value float64) scores.Row {
		return scores.Row{Study: "s", Model: "net", Layer: "pool", Data: "d", Measure: measure, Statistic: statistic, Factor: factor,
			Value: value, Low: math.NaN(), High: math.NaN(), Null: math.NaN(), N: 9}
	}
	text := printed(t, []scores.Row{
		row("informativeness", "r2", "hue", 0.75), row("informativeness", "r2", "scale", 0.25),
		row("distance", "l2", "", 0.5), row("distance", "l2", "class=cat", 0.125),
	}, scores.Record{Study: "s", Measures: reporttest.Measures()}, Options{Width: 120, All: true})
	if !strings.Contains(text, "factor  layer") {
		t.Errorf("factors have no heading of their own in\n%s", text)
	}
	for want, shown := range map[string]bool{"hue": true, "0.750": true, "scale": true, "0.250": true, "0.500": true, "cat": false, "0.125": false} {
		if strings.Contains(text, want) != shown {
			t.Errorf("the text has %q: %v, want %v, in\n%s", want, !shown, shown, text)
		}
	}
}

// TestOneErrorOfManyCells checks that an error is printed once, with the number of affected cells.
// A cell is one measure of one model on one data set under one value of a transformation. The
// folder failures of the run folder, with a file for each error, is named only if the table is cut
// short.
func TestOneErrorOfManyCells(t *testing.T) {
	t.Parallel()
	var failed []scores.Failure
	for i := range 5 {
		failed = append(failed, scores.Failure{Measure: "accuracy", Model: "net", Data: "d", Transform: "turn", Parameter: fmt.Sprint(i), Error: "the data have 5 classes"})
	}
	failed = append(failed, scores.Failure{Model: "other", Error: "truncated"})
	var b bytes.Buffer
	if err := WriteFailures(&b, failed, Options{Width: 120, All: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"accuracy of model net on data d under turn 0,", "and 4 more", "model other"} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("no single %q in\n%s", want, b.String())
		}
	}
	if strings.Count(b.String(), "the data have 5 classes") != 1 || strings.Contains(b.String(), "failures has a file") {
		t.Errorf("the error is not printed exactly once, or a folder of failures is named, in\n%s", b.String())
	}
}

var nan = math.NaN()
