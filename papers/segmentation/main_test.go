package main

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

// artificialRows returns scores of three seeds for each of kinds, the pairs of a decoder and an
// augmentation. A view is a transformation with its parameter: a shift by a fraction of the 32
// pixels of a side, or a rotation by degrees. The statistics of class maps are 0.1, 0.2 and 0.3 for
// seeds 1, 2 and 3, minus 0.05 with affine augmentation. The relative error is 1 in the first
// layer, Relu, and 2 in stage2.
func artificialRows() []scores.Row {
	var rows []scores.Row
	for seed, base := range map[string]float64{"1": 0.1, "2": 0.2, "3": 0.3} {
		for _, k := range kinds {
			value := base
			if k.augmentation == "affine" {
				value -= 0.05
			}
			add := func(transform, parameter, layer, statistic string, value float64) {
				rows = append(rows, scores.Row{Model: "segmentation/seed-" + seed + "-augment-" + k.augmentation + "-network-" + k.decoder,
					Transform: transform, Parameter: parameter, Layer: layer, Statistic: statistic, Value: value})
			}
			for _, view := range [][2]string{{"shift", "0.03125"}, {"shift", "0.125"}, {"rotation", "15"}, {"rotation", "45"}, {"rotation", "90"}} {
				for _, statistic := range []string{"clean-miou", "moved-miou", "pixel-agreement", "miou"} {
					add(view[0], view[1], "", statistic, value)
				}
				add(view[0], view[1], "stage2/block1/Relu_1", "relative-error", 2)
				add(view[0], view[1], "Relu", "relative-error", 1)
			}
		}
	}
	class := rows[0]
	class.Factor, class.Value = "class=1", 9 // the tables leave out scores of a single class
	return append(rows, class)
}

// TestTables compares the tables with values computed by hand: the mean of 0.1, 0.2 and 0.3 has a
// standard error of 0.1 / sqrt(3), and the 97.5 % quantile of Student's t with two degrees of
// freedom is 4.303. The lower bound would be negative, and is clipped to 0. In the tables "A less
// B" is the difference A - B. TestVerdict says what "seen", "not seen" and "open" stand for.
func TestTables(t *testing.T) {
	values, err := read(artificialRows())
	if err != nil {
		t.Fatal(err)
	}
	out := outputs(values)
	if want := []string{"U-Net", "plain", "rotation by 15 degrees", "pixel agreement", "0.200", "0.000", "0.448"}; !slices.ContainsFunc(out, func(r []string) bool { return slices.Equal(r, want) }) {
		t.Errorf("outputs lack %q: %q", want, out)
	}
	// A header and, for each of four kinds of trainings, the IoU of images that are not transformed
	// and three statistics for each of five transformations.
	if want := 1 + 4*(1+5*3); len(out) != want {
		t.Errorf("%d rows of outputs, not %d", len(out), want)
	}
	differences := effects(values)
	for _, want := range [][]string{
		{"affine less plain", "FCN", "rotation by 45 degrees", "pixel agreement", "-0.050 [-0.050, -0.050] not seen"},
		{"U-Net less FCN", "affine", "translation by 1 pixel", "mean IoU with labels", "+0.000 [+0.000, +0.000] open"},
	} {
		if !slices.ContainsFunc(differences, func(r []string) bool { return slices.Equal(r, want) }) {
			t.Errorf("differences lack %q", want)
		}
	}
	layers := depths(values)
	if got := layers[1]; !slices.Equal(got, []string{"FCN", "plain", "Relu", "translation by 1 pixel", "1.000", "1.000", "1.000"}) {
		t.Errorf("the first layer is %q, want an error of 1 of the FCN's first ReLU under a translation by 1 pixel", got)
	}
	// The header and five transformations of the first layer come before the second layer.
	if got := layers[6][2:5]; !slices.Equal(got, []string{"stage2", "translation by 1 pixel", "2.000"}) {
		t.Errorf("the second layer is %q, want stage2 with an error of 2", got)
	}
}

// TestVerdict checks the words for the interval of a difference: "seen" if it is above 0, "not
// seen" if it is below 0, else "open". It also checks that a single value has no interval.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{{0.01, 0.2, "seen"}, {-0.2, -0.01, "not seen"}, {-0.1, 0.1, "open"}, {0, 0.1, "open"}, {math.NaN(), math.NaN(), "open"}} {
		if got := verdict(c.low, c.high); got != c.want {
			t.Errorf("[%v, %v] is %q, want %q", c.low, c.high, got, c.want)
		}
	}
	if mean, low, _ := tablefile.Interval([]float64{3}); mean != 3 || !math.IsNaN(low) {
		t.Errorf("one value has the mean %v and the bound %v", mean, low)
	}
}

// TestOtherScores checks that scores of other studies are an error.
func TestOtherScores(t *testing.T) {
	if _, err := read([]scores.Row{{Model: "resnet20", Statistic: "miou", Value: 1}}); err == nil {
		t.Error("a model that was not trained by papers/segmentation/training/segmentation.yaml is accepted")
	}
}
