package plan

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// TestMatchClasses matches classes by name, or by order if those of one model are numbers only.
func TestMatchClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string // the class names of the two models
		order []int  // for each class of the first model, its index in the second; nil: the same order
		err   string // a part of the error
	}{
		{"cat dog car", "cat dog car", nil, ""},
		{"cat dog car", "car cat dog", []int{1, 2, 0}, ""},
		{"cat dog car", "0 1 2", nil, ""},
		{"0 1 2", "cat dog car", nil, ""},
		{"cat dog", "cat dog car", nil, "model A has 2 classes and model B 3"},
		{"cat dog car", "cat dog bus", nil, `class "car" of model A is not a class of model B`},
		{"cat cat car", "cat dog car", nil, `class "cat" of model A`},
	} {
		order, err := matchClasses([2][]string{strings.Fields(c.a), strings.Fields(c.b)}, [2]string{"A", "B"})
		if !slices.Equal(order, c.order) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q and %q: %v, %v; want %v, %q", c.a, c.b, order, err, c.order, c.err)
		}
	}
}

// TestJointClasses compares a model of the classes a and b with one of three classes, of which
// output 2 is a and output 0 is b. The data have the classes b, another, and a. columns are the
// outputs of the classes (nil: all in their order), and subset says whether a model has others.
func TestJointClasses(t *testing.T) {
	t.Parallel()
	c := &jointClasses{names: []string{"a", "b"}, columns: [2][]int{nil, {2, 0}}, subset: [2]bool{false, true}, labels: []int{1, dataset.NoLabel, 0}}
	// Log probabilities. Those of outputs 2 and 0, normalised to the sum 1, are 0.75 and 0.25.
	z, err := tensor.From([]float32{float32(math.Log(.1)), float32(math.Log(.6)), float32(math.Log(.3))}, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.prediction(0, z); &got.Data[0] != &z.Data[0] {
		t.Error("a prediction of all classes in their order was copied")
	}
	got := c.prediction(1, z)
	for k, want := range []float64{.75, .25} {
		if p := math.Exp(float64(got.Data[k])); math.Abs(p-want) > 1e-6 {
			t.Errorf("class %d has the probability %v, want %v", k, p, want)
		}
	}
	for from, want := range map[int]int{0: 1, 1: dataset.NoLabel, 2: 0, 3: dataset.NoLabel, dataset.NoLabel: dataset.NoLabel} {
		if got := c.label(from); got != want {
			t.Errorf("label %d of the data is class %d, want %d", from, got, want)
		}
	}
}
