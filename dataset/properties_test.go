package dataset

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestPropertiesOf checks an image of vertical stripes of one pixel, 0 and a grey g, and a red one:
// the Laplacian of the stripes is 2 g on black ones and -2 g on grey ones.
func TestPropertiesOf(t *testing.T) {
	t.Parallel()
	const h, w, grey = 6, 10, 0.4
	stripes, red := tensor.New(1, h, w), tensor.New(3, 4, 9)
	for i := range stripes.Data {
		stripes.Data[i] = float32(i%w%2) * grey
	}
	for i := range 4 * 9 {
		red.Data[i] = 1
	}
	for _, c := range []struct {
		image tensor.Tensor
		want  [4]float64
	}{
		{stripes, [4]float64{255 * grey / 2, 255 * grey / 2, 4 * 255 * 255 * grey * grey, math.Sqrt(h * w)}},
		{red, [4]float64{0.299 * 255, 0, 0, 6}},
		{tensor.New(1, 1, 4), [4]float64{0, 0, 0, 2}},
	} {
		got, err := PropertiesOf(c.image)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range ImageProperties {
			if math.Abs(got[i]-c.want[i]) > 1e-6*max(1, c.want[i]) {
				t.Errorf("%s of shape %v: %v, want %v", name, c.image.Shape, got[i], c.want[i])
			}
		}
	}
	if _, err := PropertiesOf(tensor.New(2, 3, 3)); err == nil {
		t.Error("two channels have properties")
	}
}

// TestObjectOf checks the place of the largest box that is no crowd, and that of a mask.
func TestObjectOf(t *testing.T) {
	t.Parallel()
	mask := tensor.New(4, 8) // an object of 2 x 2 pixels at the top right, of class 2
	for _, i := range []int{6, 7, 14, 15} {
		mask.Data[i] = 2
	}
	mask.Data[0] = -1 // no class
	full := tensor.New(2, 2)
	for i := range full.Data {
		full.Data[i] = 1
	}
	for name, c := range map[string]struct {
		truth *Truth
		want  []float64
	}{
		"boxes": {&Truth{Objects: []Object{{Left: 0, Top: 0, Right: 0.1, Bottom: 0.1}, {Left: 0.5, Top: 0.25, Right: 1, Bottom: 0.75}, {Right: 1, Bottom: 1, Crowd: true}}}, []float64{0.75, 0.5, 0.5}},
		"mask":  {&Truth{Mask: mask}, []float64{7. / 8, 1. / 4, math.Sqrt(4. / 32)}},
		"none":  {nil, nil}, "no objects": {&Truth{Objects: []Object{}}, nil}, "background": {&Truth{Mask: tensor.New(2, 2)}, nil}, "no background": {&Truth{Mask: full}, nil},
	} {
		got, ok := ObjectOf(c.truth)
		if ok != (c.want != nil) || len(got) != len(c.want) {
			t.Errorf("%s: %v (%v), want %v", name, got, ok, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", name, ObjectProperties[i], got[i], c.want[i])
			}
		}
	}
}
