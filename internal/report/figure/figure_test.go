package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// study returns the rows (one score each) of a small study of two models. Effective invariance (do
// predictions stay the same?) has scores under the transformation tilt with the angles 15 and 30,
// and for "" their mean. SEIS, a measure of layers, has scores of five layers under the
// transformation gray. Null is the value by chance.
func study() []scores.Row {
	nan := math.NaN()
	var rows []scores.Row
	for m, model := range []string{"small", "large"} {
		for _, p := range []string{"15", "30", ""} {
			rows = append(rows, scores.Row{Model: model, Depth: scores.NoDepth, Data: "d", Transform: "tilt", Parameter: p, Measure: "effective-invariance",
				Statistic: "ei", Value: 0.5 + 0.1*float64(m), Low: 0.4, High: 0.7, Null: 0.1, N: 100})
		}
		for depth := range 5 {
			for _, statistic := range []string{"equivariance", "rank"} {
				rows = append(rows, scores.Row{Model: model, Layer: fmt.Sprintf("/layer%d", depth), Depth: 3*depth + m, Data: "d", Transform: "gray", Measure: "seis",
					Statistic: statistic, Value: 1 - 0.1*float64(depth), Low: nan, High: nan, Null: 0.2, N: 100})
			}
		}
	}
	return rows
}

// svg returns the figure of rows as SVG, and fails the test if it cannot be drawn.
func svg(t *testing.T, rows []scores.Row, o Options) string {
	t.Helper()
	f, err := Draw(rows, o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b, "svg"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// textsOf returns the texts of an SVG, and checks that it is well-formed.
func textsOf(t *testing.T, text string) []string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var out []string
	in := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if in = e.Name.Local == "text"; !in && e.Name.Local == "script" {
				t.Fatal("the SVG holds a script")
			}
		case xml.CharData:
			if in {
				out = append(out, string(e))
			}
		case xml.EndElement:
			in = false
		}
	}
}

// TestChartsSayWhatTheyShow looks for texts in each kind of chart. Those of want may be part of a
// longer text. Those of absent must not be a whole text. Of the rank of SEIS neither a high nor a
// low value is better, so that it is drawn only with the option Every.
func TestChartsSayWhatTheyShow(t *testing.T) {
	t.Parallel()
	layerPairs := []scores.Row{} // similarities of layers l0 to l2 and k0 to k2
	for i := range 3 {
		for j := range 3 {
			layerPairs = append(layerPairs, scores.Row{Model: "a", OtherModel: "b", Layer: fmt.Sprint("l", i), OtherLayer: fmt.Sprint("k", j), Depth: i,
				Measure: "similarity", Statistic: "linear-cka", Value: float64(i+j) / 4, Low: math.NaN(), High: math.NaN(), Null: math.NaN()})
		}
	}
	// The F1 score of matched boxes: over all boxes, and over those of at least a confidence.
	detections := []scores.Row{{Model: "net", Transform: "turn", Measure: "dense-equivariance", Statistic: "matched", Value: 0.9, Low: math.NaN(), High: math.NaN(), Null: 0.1}}
	for i := range 3 {
		r := detections[0]
		r.Factor, r.Value = fmt.Sprintf("confidence=0.%d", 2+i), 0.3+float64(i)/5
		detections = append(detections, r)
	}
	for _, c := range []struct {
		o      Options
		rows   []scores.Row
		want   []string
		absent []string
	}{
		{Options{Measures: reporttest.Measures(), Chart: Depth}, study(), []string{"small", "large", "equivariance", "relative depth, first to last layer"}, []string{"rank"}},
		{Options{Measures: reporttest.Measures(), Chart: Depth, Every: true, Columns: 2}, study(), []string{"rank", "equivariance"}, nil},
		{Options{Measures: reporttest.Measures(), Chart: Depth, Depth: "absolute"}, study(), []string{"depth of the layer"}, nil},
		{Options{Measures: reporttest.Measures(), Chart: Parameter}, study(), []string{"tilt", "effective invariance", "small"}, []string{"equivariance"}},
		{Options{Chart: Confidence, Every: true}, detections, []string{"least confidence", "0.2", "0.4", "matched"}, nil},
		{Options{Measures: reporttest.Measures(), Chart: Bars}, study(), []string{"small", "large", "effective invariance"}, []string{"equivariance"}},
		{Options{Measures: reporttest.Measures(), Chart: Heat}, layerPairs, []string{"l0", "k2", "linear CKA", "0.75"}, nil},
		{Options{Measures: reporttest.Measures(), Chart: Distribution, Title: "Two models"}, study(), []string{"Two models", "share"}, nil},
	} {
		got := textsOf(t, svg(t, c.rows, c.o))
		all := "\n" + strings.Join(got, "\n") + "\n"
		for _, w := range c.want {
			if !strings.Contains(all, w) {
				t.Errorf("%s lacks the text %q: %q", c.o.Chart, w, got)
			}
		}
		for _, w := range c.absent {
			if strings.Contains(all, "\n"+w+"\n") {
				t.Errorf("%s has the text %q, want none", c.o.Chart, w)
			}
		}
	}
}

// TestFormatsAndSizes writes figures of one column, 85 mm wide, and of two columns, 175 mm, as PNG
// and PDF. It checks that a GIF, which is not supported, is an error.
func TestFormatsAndSizes(t *testing.T) {
	t.Parallel()
	for columns, mm := range map[int]float64{1: 85, 2: 175} {
		f, err := Draw(study(), Options{Measures: reporttest.Measures(), Chart: Depth, Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.Write(&b, "png"); err != nil {
			t.Fatal(err)
		}
		image, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if want := mm / 25.4 * dpi; math.Abs(float64(image.Bounds().Dx())-want) > 1.5 {
			t.Errorf("%d columns: %d pixels wide, want %.0f", columns, image.Bounds().Dx(), want)
		}
		b.Reset()
		if err := f.Write(&b, "pdf"); err != nil || !bytes.HasPrefix(b.Bytes(), []byte("%PDF-")) {
			t.Errorf("the PDF begins with %q, want %%PDF-; error %v", b.Bytes()[:min(b.Len(), 8)], err)
		}
		if !bytes.Contains(b.Bytes(), []byte("/FontFile2")) {
			t.Error("the PDF does not embed its font")
		}
		if err := f.Write(&b, "gif"); err == nil {
			t.Error("writing a GIF: no error")
		}
	}
}

// Markup in a name is shown as text, without control characters.
func TestMarkupInNames(t *testing.T) {
	t.Parallel()
	rows := study()
	for i := range rows {
		if rows[i].Model == "small" {
			rows[i].Model = "</text><script>alert(1)</script>&\x1b[31m"
		}
	}
	got := strings.Join(textsOf(t, svg(t, rows, Options{Measures: reporttest.Measures(), Chart: Depth, Columns: 2})), "\n")
	if !strings.Contains(got, "<script>") || strings.Contains(got, "\x1b") {
		t.Errorf("the name is not shown as text: %q", got)
	}
}

// Values that are not finite are left out, and a figure without values is an error.
func TestMissingValues(t *testing.T) {
	t.Parallel()
	rows := study()
	for i := range rows {
		if i%3 == 0 {
			rows[i].Value = math.NaN()
		}
		rows[i].Low, rows[i].Null = math.Inf(-1), math.NaN()
	}
	for _, c := range []Chart{Depth, Parameter, Bars, Heat, Distribution} {
		svg(t, rows, Options{Measures: reporttest.Measures(), Chart: c})
		if _, err := Draw(nil, Options{Measures: reporttest.Measures(), Chart: c}); !errors.Is(err, errEmpty) {
			t.Errorf("%s without rows: error %v, want %v", c, err, errEmpty)
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	manyModels := []scores.Row{}
	for i := range 40 {
		manyModels = append(manyModels, scores.Row{Model: fmt.Sprint("m", i), Depth: 1, Layer: "l", Measure: "seis", Statistic: "equivariance", Value: 1},
			scores.Row{Model: fmt.Sprint("m", i), Depth: 2, Layer: "k", Measure: "seis", Statistic: "equivariance", Value: 1})
	}
	// The keys are parts of the messages of the wanted errors. In the last three cases no model is
	// called n, 40 panels are too many, and the first three rows of study are not of layers.
	for want, call := range map[string]func() (*Figure, error){
		"1 or 2 columns": func() (*Figure, error) {
			return Draw(study(), Options{Measures: reporttest.Measures(), Chart: Depth, Columns: 3})
		},
		"unknown chart": func() (*Figure, error) { return Draw(study(), Options{Measures: reporttest.Measures(), Chart: "pie"}) },
		"unknown field": func() (*Figure, error) {
			return Draw(study(), Options{Measures: reporttest.Measures(), Chart: Depth, Colour: "taste"})
		},
		"must be": func() (*Figure, error) {
			return Draw(study(), Options{Measures: reporttest.Measures(), Chart: Depth, Width: 1e9})
		},
		"to highlight": func() (*Figure, error) {
			return Draw(manyModels, Options{Measures: reporttest.Measures(), Chart: Depth, Highlight: "n"})
		},
		"is the maximum": func() (*Figure, error) {
			return Draw(manyModels, Options{Measures: reporttest.Measures(), Chart: Depth, Colour: "data", Panel: "model"})
		},
		"no measure here is": func() (*Figure, error) {
			return Draw(study()[:3], Options{Measures: reporttest.Measures(), Chart: Depth})
		},
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// The two panels of a figure have data areas of the same size, so that curves can be compared.
func TestPanelsAlign(t *testing.T) {
	t.Parallel()
	f, err := Draw(study(), Options{Measures: reporttest.Measures(), Chart: Depth, Every: true, Columns: 2})
	if err != nil {
		t.Fatal(err)
	}
	tiles := f.tiles(draw.New(vgimg.New(f.width, f.height)))
	if len(tiles) != 2 {
		t.Fatalf("%d panels, want 2", len(tiles))
	}
	a, b := f.panels[0].DataCanvas(tiles[0]).Size(), f.panels[1].DataCanvas(tiles[1]).Size()
	if math.Abs(float64(a.X-b.X)) > 0.5 || math.Abs(float64(a.Y-b.Y)) > 0.5 {
		t.Errorf("the data areas of the panels are %v and %v in size, want equal ones", a, b)
	}
}

// A scatter plot of 20 models names its axes, the groups old and new, the models and the
// correlation.
func TestScatter(t *testing.T) {
	t.Parallel()
	var points []correlation.Point
	for i := range 20 {
		x := float64(i) / 20
		// 1000 is the number of samples. The sine scatters the points around a line in logits.
		points = append(points, correlation.Point{Label: fmt.Sprint("m", i), Group: []string{"old", "new"}[i%2], X: x, Y: correlation.InverseLogit(3*x+0.2*math.Sin(float64(5*i)), 1000), N: 1000})
	}
	fit, err := correlation.Analyse(points, correlation.Options{Logit: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := DrawScatter([]report.Scatter{report.NewScatter(points, fit, "", "invariance", "accuracy", true)}, Options{Labels: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b, "svg"); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(textsOf(t, b.String()), "\n")
	for _, w := range []string{"invariance", "accuracy", "old", "new", "m7", fmt.Sprintf("r = %.2f", fit.Pearson.Value)} {
		if !strings.Contains(got, w) {
			t.Errorf("the texts %q lack %q", got, w)
		}
	}
	if _, err := DrawScatter(nil, Options{}); !errors.Is(err, errEmpty) {
		t.Errorf("a scatter plot without data: error %v, want %v", err, errEmpty)
	}
}

// TestTicks checks that an axis has 2 to 6 ticks, all within its range.
func TestTicks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		high := low + math.Pow(10, rapid.Float64Range(-4, 6).Draw(t, "size"))
		ticks := niceTicks(low, high)
		if len(ticks) < 2 || len(ticks) > 6 {
			t.Fatalf("%d ticks between %g and %g, want 2 to 6", len(ticks), low, high)
		}
		for _, k := range ticks {
			if k.Value < low-1e-6*(high-low) || k.Value > high+1e-6*(high-low) {
				t.Fatalf("a tick at %g, outside %g to %g", k.Value, low, high)
			}
		}
	})
	if got := fmt.Sprint(niceTicks(0, 1)); got != "[{0 0.0} {0.2 0.2} {0.4 0.4} {0.6000000000000001 0.6} {0.8 0.8} {1 1.0}]" {
		t.Errorf("ticks from 0 to 1: %s, want %s", got, "[{0 0.0} {0.2 0.2} {0.4 0.4} {0.6000000000000001 0.6} {0.8 0.8} {1 1.0}]")
	}
}

// The shares of the values in the bins of a histogram add up to 1.
func TestHistogram(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var rows []scores.Row
		for _, v := range rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 50).Draw(t, "values") {
			rows = append(rows, scores.Row{Value: v})
		}
		var sum float64
		for _, share := range histogram(rows, 0, 1) {
			sum += share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the shares add up to %g, want 1", sum)
		}
	})
}
