package dense

import (
	"math"
	"strconv"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/paired"
)

// The columns of a pair of predictions of keypoints, the mean distance of the sample's keypoints,
// then the sum and number of distances, and from pointSums on sum and number for each keypoint. in
// units of the square root of the image's area:
const (
	samplePointDistance = iota
	pointDistances
	pointCount
	pointSums
)

func addPoints(spec *paired.Spec, f *decoded.Format) {
	spec.Columns = make([]paired.Column, pointSums+2*f.Keypoints)
	spec.Columns[samplePointDistance] = paired.Column{Sample: "keypoint-distance", Transformed: true}
	spec.Derived = []paired.Derived{ratio("keypoint-distance", "", pointDistances, pointCount, "no keypoint is visible in x and in T(x): set a lower confidence in output")}
	for k := range f.Keypoints {
		at := pointSums + 2*k
		spec.Derived = append(spec.Derived, ratio("keypoint-distance", "keypoint="+strconv.Itoa(k), at, at+1, ""))
	}
	spec.Action = func(measure.Site) (paired.Action, error) { return &pointAction{f}, nil }
}

// A row of tau f(x) has, for each moved keypoint, x and y in fractions of the image's sides, and 1
// if it is visible and inside, else 0.
type pointAction struct{ format *decoded.Format }

func (a *pointAction) Len() int { return 3 * a.format.Keypoints }

func (a *pointAction) Act(dst []float32, _ []float64, z []float32, move measure.Motion) error {
	m, err := newMotion(move, a.format.Height, a.format.Width)
	if err != nil {
		return err
	}
	points, err := a.read(z, "clean")
	if err != nil {
		return err
	}
	for k, p := range m.keypoints(points, point{}) { // point{}: no shift besides the motion
		if m.wrap { // what leaves the image at one side comes in at the other
			p.X, p.Y = p.X-math.Floor(p.X), p.Y-math.Floor(p.Y)
		}
		dst[3*k], dst[3*k+1], dst[3*k+2] = float32(p.X), float32(p.Y), 0
		if p.Visible && p.X >= 0 && p.X <= 1 && p.Y >= 0 && p.Y <= 1 {
			dst[3*k+2] = 1
		}
	}
	return nil
}

// A row of f has x, y and confidence of each keypoint. One that is not finite is an error.
func (a *pointAction) read(row []float32, view string) ([]decoded.Keypoint, error) {
	points := make([]decoded.Keypoint, a.format.Keypoints)
	for k := range points {
		x, y, value := float64(row[3*k]), float64(row[3*k+1]), float64(row[3*k+2])
		if math.IsNaN(x+y+value) || math.IsInf(x+y+value, 0) {
			return nil, &measure.NonFinite{View: view}
		}
		least := a.format.Confidence
		points[k] = decoded.Keypoint{X: x, Y: y, Visible: least == 0 || float32(value) >= float32(least)}
	}
	return points, nil
}

func (a *pointAction) Pair(out []float64, acted, transformed []float32) error {
	found, err := a.read(transformed, "transformed")
	if err != nil {
		return err
	}
	clear(out)
	h, w := float64(a.format.Height), float64(a.format.Width)
	for k, q := range found {
		p := acted[3*k:]
		if p[2] == 0 || !q.Visible {
			continue
		}
		distance := math.Hypot((q.X-float64(p[0]))*w, (q.Y-float64(p[1]))*h) / math.Sqrt(h*w)
		for _, at := range []int{pointDistances, pointSums + 2*k} {
			out[at] += distance
			out[at+1]++
		}
	}
	if out[samplePointDistance] = math.NaN(); out[pointCount] > 0 {
		out[samplePointDistance] = out[pointDistances] / out[pointCount]
	}
	return nil
}
