package transform

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// naturalImage returns an image of 3 x side x side whose detail falls with its frequency, as in
// photographs.
func naturalImage(side int, r *rand.Rand) tensor.Tensor {
	x := tensor.New(3, side, side)
	for k := range 3 {
		plane := x.Data[k*side*side:][:side*side]
		for cell := 1; cell <= side; cell *= 2 {
			n := side/cell + 2
			grid := make([]float32, n*n)
			for i := range grid {
				grid[i] = float32(cell) * float32(r.NormFloat64())
			}
			for i := range plane {
				plane[i] += bilinear(grid, n, n, float64(i/side)/float64(cell), float64(i%side)/float64(cell))
			}
		}
		low, high := plane[0], plane[0]
		for _, v := range plane {
			low, high = min(low, v), max(high, v)
		}
		for i, v := range plane {
			plane[i] = (v - low) / (high - low)
		}
	}
	return x
}

// Each severity of each corruption changes images of every size more than the one before, but where
// the published settings do not; see Corrupt.
func TestSeveritiesGrow(t *testing.T) {
	t.Parallel()
	const pixels = 6_000 // of the images of a size together, at least
	// least is the least change, as a part of that at the severity before.
	least := func(kind string, side, severity int) float64 {
		switch {
		case kind == "glass-blur" || kind == "elastic-transform":
			return 0
		case kind == "motion-blur" && side < largeSide && severity == 4:
			return 1 - 1e-6
		case kind == "snow" && severity == 3, kind == "fog" && side >= largeSide && severity == 4:
			return 0.9 // these settings nearly tie, and the mean over these images has an error
		}
		return 1 + 1e-6
	}
	sides := []int{36, 40, 42, 44, 45, 48, 54, 56, 63, 64, 95, 96}
	for side := 8; side <= 33; side++ {
		sides = append(sides, side)
	}
	for _, kind := range Corruptions() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, side := range sides {
				before := 0.0
				for severity := 1; severity <= 5; severity++ {
					change, n := 0.0, 0
					for image := uint64(0); image < 4 || n < 3*pixels; image++ {
						x := naturalImage(side, rand.New(rand.NewPCG(image, uint64(side))))
						y := apply(Corrupt{kind, Fixed(float64(severity))}.Draw(rand.New(rand.NewPCG(image, 1))), x)
						for i, v := range y.Data {
							change += math.Abs(float64(v - x.Data[i]))
						}
						n += len(x.Data)
					}
					change /= float64(n)
					if !(change > least(kind, side, severity)*before && change > 0.0005) {
						t.Errorf("%d x %[1]d pixels change by %.5f at severity %d, and by %.5f at the one before", side, change, severity, before)
					}
					before = change
				}
			}
		})
	}
}
