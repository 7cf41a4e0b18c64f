package dense_test

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// accuracyScores returns the scores of dense-accuracy by statistic and factor, such as "clean-miou
// class=1". truth holds the labels of images x; clean and moved are the outputs for x and T(x),
// and tr is T (nil: none). Statistics are of the mean average precision (map) of boxes or the mean
// IoU (miou) of masks. The functions boxFormat, mapFormat, boxRows, box and near are in
// dense_test.go.
func accuracyScores(t *testing.T, f *decoded.Format, tr transform.Transform, truth []*dataset.Truth, clean, moved tensor.Tensor) map[string]measure.Score {
	t.Helper()
	a, err := feedTruth(f, tr, truth, clean, moved)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, s := range scores {
		out[strings.TrimSpace(s.Statistic+" "+s.Factor)] = s
	}
	return out
}

// siteOf returns the site of n labelled samples: what an accumulator knows of the data and the
// model.
func siteOf(f *decoded.Format, tr transform.Transform, n int) measure.Site {
	return measure.Site{Layout: measure.NewLayout(n), Output: f, Motion: transform.Motions(tr), Truth: measure.Truth{Masks: f.Kind == decoded.ClassMap}}
}

// feedTruth returns an accumulator of dense-accuracy after an update with all samples. A batch has
// the place of each sample in the layout, its index in the data set, its label (here none) and, in
// Ops, T with the parameters drawn for it.
func feedTruth(f *decoded.Format, tr transform.Transform, truth []*dataset.Truth, clean, moved tensor.Tensor) (measure.Accumulator, error) {
	a, err := dense.Accuracy().New(siteOf(f, tr, len(truth)))
	if err != nil {
		return nil, err
	}
	b := &measure.Batch{Clean: clean, Transformed: moved, Truth: truth}
	for i := range truth {
		b.Place, b.Index, b.Label = append(b.Place, i), append(b.Index, i), append(b.Label, measure.NoLabel)
		if tr != nil {
			b.Motions = append(b.Motions, transform.MotionOf(tr.Draw(rand.New(rand.NewPCG(1, uint64(i))))))
		}
	}
	return a, a.Update(b)
}

// A cocoBox is an annotation or a result of COCO; Box is left, top, width and height in pixels.
type cocoBox struct {
	Image    int        `json:"image_id"`
	Category int        `json:"category_id"`
	Box      [4]float64 `json:"bbox"`
	Score    float64
	Area     float64
	Crowd    int `json:"iscrowd"`
}

// TestMeanAveragePrecision compares with pycocotools; testdata/coco.py wrote the golden values.
func TestMeanAveragePrecision(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/coco.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Height, Width   float64
		Images, Classes int
		Labelled, Found []cocoBox          // labels, and boxes that a detector found
		Map             map[string]float64 // mAP by factor; "": over all classes and sizes
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	// An output has up to 130 rows for boxes (Candidates), of which all remain (Most).
	f := &decoded.Format{Kind: decoded.BoxList, Outputs: []string{"boxes"}, Height: int(g.Height), Width: int(g.Width),
		Candidates: 130, Most: 130, Classes: g.Classes}
	boxOf := func(b cocoBox) decoded.Box {
		return decoded.Box{Left: b.Box[0] / g.Width, Top: b.Box[1] / g.Height, Right: (b.Box[0] + b.Box[2]) / g.Width, Bottom: (b.Box[1] + b.Box[3]) / g.Height,
			Score: b.Score, Class: b.Category - 1}
	}
	truth, found := make([]*dataset.Truth, g.Images), make([][]decoded.Box, g.Images)
	for i := range truth {
		truth[i] = &dataset.Truth{Area: g.Height * g.Width}
	}
	for _, b := range g.Labelled {
		o := boxOf(b)
		truth[b.Image].Objects = append(truth[b.Image].Objects, dataset.Object{Left: o.Left, Top: o.Top, Right: o.Right, Bottom: o.Bottom, Area: b.Area, Class: o.Class, Crowd: b.Crowd != 0})
	}
	for _, b := range g.Found {
		found[b.Image] = append(found[b.Image], boxOf(b))
	}
	for _, boxes := range found {
		slices.SortStableFunc(boxes, func(a, b decoded.Box) int {
			switch {
			case a.Score > b.Score:
				return -1
			case a.Score < b.Score:
				return 1
			}
			return 0
		})
	}
	rows := boxRows(f, found...)
	got := accuracyScores(t, f, transform.Identity{}, truth, rows, rows)
	for name, want := range g.Map {
		for _, view := range []string{"clean-map", "moved-map"} {
			name := strings.TrimSpace(view + " " + name)
			if s, ok := got[name]; !ok || !(math.Abs(s.Value-want) <= 1e-6) {
				t.Errorf("%s: %v, want %v", name, s.Value, want)
			}
		}
	}
	if n := 3 * len(g.Map); len(got) != n { // clean, moved and the drop between them
		t.Errorf("%d scores, want %d", len(got), n)
	}
	if s := got["clean-map"]; !(s.Low < s.Value && s.Value < s.High) || len(s.Replicates) == 0 {
		t.Errorf("the interval of clean-map is [%v, %v] around %v", s.Low, s.High, s.Value)
	}
	if s := got["map-drop"]; s.Value != 0 {
		t.Errorf("the drop under the identity is %v", s.Value)
	}
}

// TestLabelsMove checks that a perfect detector has a mAP of 1 under a rotation by 90 degrees: the
// labels are rotated with the image.
func TestLabelsMove(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	f.Height = f.Width
	f.Most = 40
	b := box(1, 2, 4, 8)
	rotated := decoded.Box{Left: b.Top, Top: 1 - b.Right, Right: b.Bottom, Bottom: 1 - b.Left, Score: 0.9}
	truth := []*dataset.Truth{{Area: 160 * 160, Objects: []dataset.Object{{Left: b.Left, Top: b.Top, Right: b.Right, Bottom: b.Bottom, Area: 0.3 * 0.6 * 160 * 160}}}}
	got := accuracyScores(t, f, transform.Rotate{Angle: transform.Fixed(90)}, truth, boxRows(f, []decoded.Box{b}), boxRows(f, []decoded.Box{rotated}))
	near(t, "clean-map", got["clean-map"].Value, 1)
	near(t, "moved-map", got["moved-map"].Value, 1)
	got = accuracyScores(t, f, transform.Rotate{Angle: transform.Fixed(90)}, truth, boxRows(f, []decoded.Box{b}), boxRows(f, []decoded.Box{b}))
	near(t, "moved-map of a detector whose boxes do not rotate", got["moved-map"].Value, 0)
	near(t, "map-drop", got["map-drop"].Value, 1)
}

// TestMeanIoUOfLabels checks the mean IoU of a map of predicted classes and a labelled mask.
func TestMeanIoUOfLabels(t *testing.T) {
	t.Parallel()
	f := mapFormat(3, 2)
	// Masks of 4 x 4, whose blocks of 2 x 2 are positions of the map. One pixel has no class.
	mask := tensor.Tensor{Shape: []int{4, 4}, Data: []float32{0, 0, 1, 1, 0, 0, 1, -1, 1, 1, 1, 1, 1, 1, 1, 1}}
	truth := []*dataset.Truth{{Mask: mask}}
	clean := tensor.Tensor{Shape: []int{1, 1, 2, 2}, Data: []float32{0, 1, 1, 0}}
	// The classes of the mirrored mask, so that the mean IoU is 1.
	flipped := tensor.Tensor{Shape: []int{1, 1, 2, 2}, Data: []float32{1, 0, 1, 1}}
	got := accuracyScores(t, f, transform.Flip{}, truth, clean, flipped)
	// The intersection and the union in pixels of the mask, for class 0: 4 of 8. For class 1: 7 of
	// 11.
	near(t, "clean-miou", got["clean-miou"].Value, (0.5+7./11)/2)
	near(t, "clean-miou class=1", got["clean-miou class=1"].Value, 7./11)
	near(t, "moved-miou", got["moved-miou"].Value, 1)
	near(t, "miou-drop", got["miou-drop"].Value, (0.5+7./11)/2-1)
	if _, ok := got["clean-miou class=2"]; ok {
		t.Error("a class without labels has a score")
	}
}

// TestAccuracyErrors checks the errors for invalid labels and outputs, the scores without a
// transformation, and that the measure is skipped if the model finds boxes and the labels are
// masks.
func TestAccuracyErrors(t *testing.T) {
	t.Parallel()
	f := mapFormat(2, 2)
	row := tensor.New(1, 1, 2, 2)
	mask := func(v float32) []*dataset.Truth {
		return []*dataset.Truth{{Mask: tensor.Tensor{Shape: []int{2, 2}, Data: []float32{v, 0, 0, 0}}}}
	}
	nan := tensor.Tensor{Shape: []int{1, 1, 2, 2}, Data: []float32{0, float32(math.NaN()), 0, 0}}
	for name, c := range map[string]struct {
		truth []*dataset.Truth
		clean tensor.Tensor
		want  string
	}{
		"class":    {mask(5), row, "the mask has class 5, outside of the model's 0 to 1"},
		"no truth": {[]*dataset.Truth{nil}, row, "sample 0: it has no labelled boxes or masks"},
		"NaN":      {mask(0), nan, "NaN or infinity in the activations of sample 0 (clean view)"},
	} {
		_, err := feedTruth(f, nil, c.truth, c.clean, tensor.Tensor{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	got := accuracyScores(t, f, nil, mask(-1), row, tensor.Tensor{})
	if s, ok := got["moved-miou"]; ok || got["clean-miou"].Value != 1 {
		t.Errorf("without a transformation: %+v, %+v", got["clean-miou"], s)
	}
	boxes := siteOf(boxFormat(), nil, 3)
	boxes.Truth.Masks = true
	if why := dense.Accuracy().Skip(boxes); !strings.Contains(why, "boxes, and the data are labelled with masks") {
		t.Errorf("Skip: %q", why)
	}
}

// TestAccuracyContract checks what holds for every measure, such as scores that do not depend on
// how the samples are divided into batches; see measuretest.Run.
func TestAccuracyContract(t *testing.T) {
	t.Parallel()
	const n = 70
	r := rand.New(rand.NewPCG(5, 6))
	f := boxFormat()
	f.Candidates, f.Most = 4, 4
	labels := mapFormat(3, 4)
	var truth, masks []*dataset.Truth
	var clean [][]decoded.Box
	for range n {
		one := &dataset.Truth{Area: 160 * 120}
		var boxes []decoded.Box
		for range r.IntN(4) {
			x, y := 0.7*r.Float64(), 0.7*r.Float64()
			o := dataset.Object{Left: x, Top: y, Right: x + 0.3, Bottom: y + 0.3, Area: 2000, Class: r.IntN(3)}
			one.Objects = append(one.Objects, o)
			boxes = append(boxes, decoded.Box{Left: x, Top: y, Right: x + 0.25, Bottom: y + 0.3, Score: float64(r.IntN(10)) / 10, Class: r.IntN(3)})
		}
		slices.SortFunc(boxes, func(a, b decoded.Box) int { return cmp.Compare(b.Score, a.Score) })
		truth, clean = append(truth, one), append(clean, boxes)
		mask := tensor.New(4, 4)
		for i := range mask.Data {
			mask.Data[i] = float32(r.IntN(3))
		}
		masks = append(masks, &dataset.Truth{Mask: mask})
	}
	maps := tensor.New(n, 1, 4, 4)
	for i := range maps.Data {
		maps.Data[i] = float32(r.IntN(3))
	}
	for name, c := range map[string]struct {
		format *decoded.Format
		rows   tensor.Tensor
		truth  []*dataset.Truth
	}{"boxes": {f, boxRows(f, clean...), truth}, "masks": {labels, maps, masks}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measuretest.Run(t, measuretest.Case{Measure: dense.Accuracy(), Clean: c.rows, Transformed: c.rows, Truth: c.truth,
				Site: siteOf(c.format, transform.Flip{}, n)})
		})
	}
}

// TestAccuracyWithoutBoxes checks that the precision is 0 if a detector finds no boxes, and not
// defined if there are no labels.
func TestAccuracyWithoutBoxes(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	labelled := []*dataset.Truth{{Area: 160 * 120, Objects: []dataset.Object{{Right: 0.5, Bottom: 0.5, Area: 4800}}}, {Area: 160 * 120}}
	got := accuracyScores(t, f, transform.Flip{}, labelled, boxRows(f, nil, nil), boxRows(f, nil, nil))
	near(t, "clean-map without found boxes", got["clean-map"].Value, 0)
	near(t, "moved-map without found boxes", got["moved-map"].Value, 0)
	none := []*dataset.Truth{{Area: 160 * 120}, {Area: 160 * 120}}
	got = accuracyScores(t, f, transform.Flip{}, none, boxRows(f, []decoded.Box{box(1, 2, 4, 8)}, nil), boxRows(f, nil, nil))
	if s := got["clean-map"]; !math.IsNaN(s.Value) || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "no sample has a label") {
		t.Errorf("clean-map without labels: %+v", s)
	}
}
