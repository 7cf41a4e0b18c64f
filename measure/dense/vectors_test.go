package dense_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// normalFormat describes an output with a surface normal at each of 4 x 4 positions.
// Transformations of the image rotate and mirror the first two components of a normal unless v is
// NoVectors. In dense_test.go, scoresOf returns the scores and the per-sample values of outputs for
// images x and T(x), and defaults the settings of a study that sets none.
func normalFormat(v decoded.Vectors) *decoded.Format {
	return &decoded.Format{Kind: decoded.ValueMap, Outputs: []string{"normals"}, Height: 4, Width: 4, Channels: 3, Vectors: v}
}

// uniformMap returns a map of 4 x 4 with one vector at each position.
func uniformMap(x, y, z float32) tensor.Tensor {
	t := tensor.New(1, 3, 4, 4)
	for i := range 16 {
		t.Data[i], t.Data[16+i], t.Data[32+i] = x, y, z
	}
	return t
}

// TestNormalsTurnWithTheImage checks that scores have no error if the normals turn as the image
// does. A normal that points right points up after a quarter turn of the image, and left after a
// flip. With YDown the second component is positive downwards, with YUp upwards.
func TestNormalsTurnWithTheImage(t *testing.T) {
	t.Parallel()
	const s = 0.6 * math.Sqrt2 / 2 // both components of a vector of length 0.6 at 45 degrees
	for name, c := range map[string]struct {
		tr       transform.Transform
		vectors  decoded.Vectors
		from, to [2]float32 // the first two components before and after
	}{
		"quarter turn":                     {transform.Rotate{Angle: transform.Fixed(90)}, decoded.YDown, [2]float32{0.6, 0}, [2]float32{0, -0.6}},
		"quarter turn, y points up":        {transform.Rotate{Angle: transform.Fixed(90)}, decoded.YUp, [2]float32{0.6, 0}, [2]float32{0, 0.6}},
		"quarter turn, from down to right": {transform.Rotate{Angle: transform.Fixed(90)}, decoded.YDown, [2]float32{0, 0.6}, [2]float32{0.6, 0}},
		"45 degrees":                       {transform.Rotate{Angle: transform.Fixed(45)}, decoded.YDown, [2]float32{0.6, 0}, [2]float32{s, -s}},
		"45 degrees, y points up":          {transform.Rotate{Angle: transform.Fixed(45)}, decoded.YUp, [2]float32{0.6, 0}, [2]float32{s, s}},
		"flip":                             {transform.Flip{}, decoded.YDown, [2]float32{0.6, 0.1}, [2]float32{-0.6, 0.1}},
		"flip, y points up":                {transform.Flip{}, decoded.YUp, [2]float32{0.6, 0.1}, [2]float32{-0.6, 0.1}},
		"translation":                      {transform.Translate{X: transform.Fixed(0.25)}, decoded.YDown, [2]float32{0.6, 0.1}, [2]float32{0.6, 0.1}},
		"enlarged":                         {transform.Scale{Factor: transform.Fixed(1.5)}, decoded.YDown, [2]float32{0.6, 0.1}, [2]float32{0.6, 0.1}},
		"three values that are no vectors": {transform.Rotate{Angle: transform.Fixed(90)}, decoded.NoVectors, [2]float32{0.6, 0}, [2]float32{0.6, 0}},
	} {
		clean, moved := uniformMap(c.from[0], c.from[1], 0.8), uniformMap(c.to[0], c.to[1], 0.8)
		got, samples := scoresOf(t, normalFormat(c.vectors), defaults(), c.tr, clean, moved)
		near(t, name+": relative-error", got["relative-error"].Value, 0)
		if a, ok := got["angle"]; ok != (c.vectors != decoded.NoVectors) || ok && !(math.Abs(a.Value) < 1e-4) {
			t.Errorf("%s: angle %v, %v", name, a.Value, ok)
		}
		if len(samples) == 0 {
			t.Errorf("%s: no per-sample values", name)
		}
	}
	// Normals that do not turn: (0.6, 0, 0.8) against (0, -0.6, 0.8).
	unturned := uniformMap(0.6, 0, 0.8)
	got, _ := scoresOf(t, normalFormat(decoded.YDown), defaults(), transform.Rotate{Angle: transform.Fixed(90)}, unturned, unturned)
	if want := math.Acos(0.64) * 180 / math.Pi; math.Abs(got["angle"].Value-want) > 1e-4 {
		t.Errorf("angle of normals that do not turn: %v, want %v", got["angle"].Value, want)
	}
	near(t, "relative-error of normals that do not turn", got["relative-error"].Value, 0.6*math.Sqrt2)
	zero := uniformMap(0, 0, 0)
	got, _ = scoresOf(t, normalFormat(decoded.YDown), defaults(), transform.Flip{}, zero, unturned)
	near(t, "angle to vectors of length 0", got["angle"].Value, 90)
}

// pointFormat describes an output of k keypoints: x and y in fractions of the image, and a
// confidence.
func pointFormat(k int) *decoded.Format {
	return &decoded.Format{Kind: decoded.PointList, Outputs: []string{"heatmaps"}, Height: 80, Width: 80, Keypoints: k}
}

// TestKeypointsOfHeatMaps checks keypoint-distance, the mean distance between the keypoints of T(x)
// and the moved keypoints of x, in units of the side of the image. Only keypoints that are visible
// in both count.
func TestKeypointsOfHeatMaps(t *testing.T) {
	t.Parallel()
	f := pointFormat(3)
	f.Confidence = 0.3
	row := func(values ...float32) tensor.Tensor { return tensor.Tensor{Shape: []int{1, 3, 3}, Data: values} }
	// The confidence of the third keypoint, 0.1, is below f.Confidence: it is not visible.
	clean := row(0.2, 0.3, 0.9, 0.5, 0.5, 0.9, 0.6, 0.1, 0.1)
	quarter := transform.Rotate{Angle: transform.Fixed(90)}
	got, _ := scoresOf(t, f, defaults(), quarter, clean, row(0.3, 0.8, 0.5, 0.5, 0.5, 0.4, 0.9, 0.9, 0.9))
	near(t, "keypoint-distance", got["keypoint-distance"].Value, 0)
	got, samples := scoresOf(t, f, defaults(), quarter, clean, row(0.3, 0.7, 0.5, 0.5, 0.5, 0.4, 0.9, 0.9, 0.9))
	near(t, "keypoint-distance", got["keypoint-distance"].Value, 0.05)
	near(t, "keypoint-distance of the first", got["keypoint-distance keypoint=0"].Value, 0.1)
	near(t, "keypoint-distance of the second", got["keypoint-distance keypoint=1"].Value, 0)
	if _, ok := got["keypoint-distance keypoint=2"]; ok {
		t.Error("a keypoint that is not visible has a score")
	}
	if len(samples) != 1 {
		t.Errorf("%d per-sample values", len(samples))
	}
	// The second keypoint leaves the image and does not count. If the transformation wraps the
	// image around, it comes in on the other side.
	shift := transform.Translate{X: transform.Fixed(0.7)}
	moved := row(0.9, 0.3, 0.9, 0.7, 0.5, 0.9, 0.3, 0.1, 0.9)
	got, _ = scoresOf(t, f, defaults(), shift, clean, moved)
	near(t, "keypoint-distance of what remains", got["keypoint-distance"].Value, 0)
	shift.Sampling.Outside = transform.Wrapped
	got, _ = scoresOf(t, f, defaults(), shift, clean, moved)
	near(t, "keypoint-distance with wrap", got["keypoint-distance"].Value, 0.25)
	// Without f.Confidence all keypoints count.
	got, _ = scoresOf(t, pointFormat(3), defaults(), transform.Identity{}, clean, clean)
	near(t, "keypoint-distance of the third", got["keypoint-distance keypoint=2"].Value, 0)
	f.Confidence = 1
	got, _ = scoresOf(t, f, defaults(), quarter, clean, clean)
	if s := got["keypoint-distance"]; !math.IsNaN(s.Value) || !strings.Contains(s.Warnings[0], "set a lower confidence in output") {
		t.Errorf("without visible keypoints: %+v", s)
	}
	bad := row(0.2, 0.3, float32(math.NaN()), 0, 0, 0, 0, 0, 0)
	for view, pair := range map[string][2]tensor.Tensor{"clean": {bad, clean}, "transformed": {clean, bad}} {
		if _, err := update(f, defaults(), quarter, pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "NaN or infinity in the activations of sample 0 ("+view+" view)") {
			t.Errorf("%s: %v", view, err)
		}
	}
	if why := dense.Accuracy().Skip(measure.Site{Output: f}); !strings.Contains(why, "neither boxes nor a class map") {
		t.Errorf("dense-accuracy of keypoints: %q", why)
	}
}

// TestContractOfKeypointsAndNormals runs measuretest.Run, which checks what every measure must
// satisfy, such as scores that do not depend on the batch size.
func TestContractOfKeypointsAndNormals(t *testing.T) {
	t.Parallel()
	const n = 70
	r := rand.New(rand.NewPCG(3, 9))
	random := func(shape ...int) tensor.Tensor {
		x := tensor.New(append([]int{n}, shape...)...)
		for i := range x.Data {
			x.Data[i] = r.Float32()
		}
		return x
	}
	f := pointFormat(4)
	f.Confidence = 0.4
	for name, format := range map[string]*decoded.Format{"keypoints": f, "normals": normalFormat(decoded.YUp)} {
		clean, moved := random(format.Shape()...), random(format.Shape()...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measuretest.Run(t, measuretest.Case{Measure: dense.New(defaults()), Clean: clean, Transformed: moved,
				Site: measure.Site{Layout: measure.NewLayout(n), Output: format, Motion: transform.Motions(transform.Flip{}), KeepSamples: true}})
		})
	}
}
