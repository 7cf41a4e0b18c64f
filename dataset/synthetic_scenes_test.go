package dataset

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// openScenes opens a source of scenes: synthetic images of several figures, each of a kind (shape),
// such as disc.
func openScenes(t *testing.T, o ScenesOptions) *Scenes {
	t.Helper()
	s, err := OpenScenes(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A scene of one figure is the image that Figure.Draw draws on black. In its mask, which holds the
// class of each pixel (0: background), the class of the figure has the area of the figure.
func TestSceneOfOneFigure(t *testing.T) {
	t.Parallel()
	o := ScenesOptions{ShapesOptions: ShapesOptions{N: 40, Size: 96, Seed: 3, Scale: []float64{0.3, 0.6}, X: []float64{-0.1, 0.1}, Y: []float64{-0.1, 0.1}}, Figures: []int{1, 1}}
	src := openScenes(t, o)
	for i := range o.N {
		s, err := src.At(t.Context(), i, Frame{}) // Frame{}: not resized
		if err != nil {
			t.Fatal(err)
		}
		figures, kinds := src.figures(i)
		// drawn returns the image of a figure, here with 3 channels.
		if want := drawn(t, figures[0], 3, o.Size); !slices.Equal(s.Input.Data, want.Data) {
			t.Fatalf("sample %d differs from the drawing of its figure", i)
		}
		if s.Label != kinds[0] || src.Classes()[s.Label] != figures[0].Kind {
			t.Errorf("sample %d has label %d, want %d for %s", i, s.Label, kinds[0], figures[0].Kind)
		}
		inside := 0.0 // number of pixels of the figure's class
		for _, v := range s.Truth.Mask.Data {
			switch int(v) {
			case kinds[0] + 1:
				inside++
			case 0:
			default:
				t.Fatalf("sample %d: the mask has the class %g, want %d or 0", i, v, kinds[0]+1)
			}
		}
		want := shapeArea(figures[0].Kind) * math.Pow(figures[0].Scale*float64(o.Size)/2, 2)
		if math.Abs(inside-want) > 0.05*want+12 { // pixels at the edge count whole or not at all
			t.Errorf("sample %d, %s: %g pixels of the class, want about the area %.1f", i, figures[0].Kind, inside, want)
		}
	}
}

// TestScenes checks that the number of figures is uniformly distributed, that the class of a pixel
// is that of the last figure that covers at least half of it, and that a textured background
// without figures is dark but not constant.
func TestScenes(t *testing.T) {
	t.Parallel()
	// Images of 0 to 3 figures.
	o := ScenesOptions{ShapesOptions: ShapesOptions{N: 2000, Size: 32}, Figures: []int{0, 3}, Textured: true}
	src := openScenes(t, o)
	if src.Classes() != nil || len(MaskClasses(src)) != 1+len(ShapeKinds()) {
		t.Errorf("classes of images %v, want none; of masks %v, want the background and each kind", src.Classes(), MaskClasses(src))
	}
	counts := make([]float64, 4)
	for i := range o.N {
		figures, _ := src.figures(i)
		counts[len(figures)]++
	}
	for n, c := range counts {
		if math.Abs(c-500) > 4*math.Sqrt(2000*0.25*0.75) { // four standard deviations
			t.Errorf("%g of 2000 images have %d figures, want about 500", c, n)
		}
	}
	for i := range 60 {
		s, err := src.At(t.Context(), i, Frame{})
		if err != nil {
			t.Fatal(err)
		}
		figures, kinds := src.figures(i)
		want := tensor.New(1, 32, 32)
		for k, f := range figures {
			// The coverage of each pixel.
			image := drawn(t, Figure{f.Kind, f.Scale, f.Rotation, f.X, f.Y, 0}, 1, 32)
			for at, v := range image.Data {
				if v >= 0.5 {
					want.Data[at] = float32(kinds[k] + 1)
				}
			}
		}
		if !slices.Equal(want.Data, s.Truth.Mask.Data) {
			t.Fatalf("sample %d: the mask is not that of its %d figures", i, len(figures))
		}
		if len(figures) == 0 && (slices.Max(s.Input.Data) > 0.6 || slices.Min(s.Input.Data) < 0 || slices.Max(s.Input.Data)-slices.Min(s.Input.Data) < 0.05) {
			t.Errorf("sample %d: the texture has values from %g to %g, want a range of at least 0.05 within [0, 0.6]", i, slices.Min(s.Input.Data), slices.Max(s.Input.Data))
		}
	}
	again, err := src.At(t.Context(), 7, Frame{})
	first, _ := src.At(t.Context(), 7, Frame{})
	if err != nil || !slices.Equal(again.Input.Data, first.Input.Data) {
		t.Errorf("a sample differs the second time that it is read; error %v", err)
	}
	framed, err := src.At(t.Context(), 7, Frame{Height: 16, Width: 16}) // resized to 16 x 16
	if err != nil || !slices.Equal(framed.Truth.Mask.Shape, []int{16, 16}) || framed.Label != NoLabel {
		t.Errorf("the resized mask has shape %v, want 16 x 16, and the label is %d, want none; error %v", framed.Truth.Mask.Shape, framed.Label, err)
	}
	part, err := Subset(src, []int{3})
	if _, ok := TruthClasses(part); err != nil || !ok || len(MaskClasses(part)) != len(MaskClasses(src)) {
		t.Errorf("a subset lacks the masks of its source; error %v", err)
	}
}

func TestSceneErrors(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]ScenesOptions{
		"figures is [3 1]":   {ShapesOptions: ShapesOptions{N: 1}, Figures: []int{3, 1}},
		"figures is [1]":     {ShapesOptions: ShapesOptions{N: 1}, Figures: []int{1}},
		"figures is [-1 1]":  {ShapesOptions: ShapesOptions{N: 1}, Figures: []int{-1, 1}},
		"figures is [1 101]": {ShapesOptions: ShapesOptions{N: 1}, Figures: []int{1, 101}},
		"n is 0":             {},
	} {
		if _, err := OpenScenes(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", o, err, want)
		}
	}
}
