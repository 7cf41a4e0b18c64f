package transform

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// numbered returns an image whose values are all different and not 0.
func numbered(c, h, w int) tensor.Tensor {
	x := tensor.New(c, h, w)
	for i := range x.Data {
		x.Data[i] = float32(i+1) / float32(len(x.Data)+1)
	}
	return x
}

// All shifts of a random crop are equally frequent, and a shifted pixel is 0 outside the image.
func TestRandomCrop(t *testing.T) {
	t.Parallel()
	const c, h, w, draws = 2, 8, 16, 30_000
	crop := RandomCrop{Padding: 0.125} // 1 pixel above and below, 2 to the left and right
	src, dst := numbered(c, h, w), tensor.New(c, h, w)
	counts := map[[2]int]float64{}
	for i := range draws {
		op := crop.Draw(seed.Rand(1, "test", i)).(shiftOp)
		dy, dx := op.offset(op.down, h), op.offset(op.right, w)
		if counts[[2]int{dy, dx}]++; counts[[2]int{dy, dx}] > 1 {
			continue
		}
		op.Apply(dst, src)
		p, ok := PointMapOf(op, h, w) // from positions of the result to those they are read from
		for channel := range c {
			for y := range h {
				for x := range w {
					var want float32
					if sy, sx := y+dy, x+dx; sy >= 0 && sy < h && sx >= 0 && sx < w {
						want = src.Data[(channel*h+sy)*w+sx]
					}
					if got := dst.Data[(channel*h+y)*w+x]; got != want {
						t.Fatalf("shift %d, %d: row %d, column %d is %g, want %g", dy, dx, y, x, got, want)
					}
					if row, column := p.Source(y, x); !ok || row != float64(y+dy) || column != float64(x+dx) {
						t.Fatalf("shift %d, %d: row %d, column %d is read from %g, %g", dy, dx, y, x, row, column)
					}
				}
			}
		}
	}
	if len(counts) != 15 {
		t.Fatalf("%d shifts, want 3 x 5", len(counts))
	}
	var chi2 float64
	for _, n := range counts {
		chi2 += (n - draws/15) * (n - draws/15) / (draws / 15)
	}
	if chi2 > 14+4*math.Sqrt(28) { // 4 standard deviations above the mean
		t.Errorf("chi-squared of the shifts is %g over 14 degrees of freedom", chi2)
	}
}

// With padding 1, the width of the image, the crop can lie wholly outside the image: here it is
// moved left by its whole width. right and down are random numbers in [0, 1); 0.5 means no shift.
func TestRandomCropOutsideTheImage(t *testing.T) {
	t.Parallel()
	src, dst := numbered(1, 3, 3), numbered(1, 3, 3)
	shiftOp{padding: 1, right: 0, down: 0.5}.Apply(dst, src)
	for i, v := range dst.Data {
		if v != 0 {
			t.Errorf("value %d is %g, want 0", i, v)
		}
	}
}

// The share of mirrored images is the probability.
func TestRandomFlip(t *testing.T) {
	t.Parallel()
	const n = 20_000
	// Whether the flip is vertical, and the probability.
	for _, f := range []RandomFlip{{false, 0.5}, {true, 0.2}, {false, 0}, {true, 1}} {
		flipped := 0.0
		for i := range n {
			switch op := f.Draw(seed.Rand(1, "test", i)).(type) {
			case Flip:
				if op.Vertical != f.Vertical {
					t.Fatalf("%+v draws %+v", f, op)
				}
				flipped++
			case Identity:
			default:
				t.Fatalf("%+v draws %T", f, op)
			}
		}
		if p := f.Probability; math.Abs(flipped-n*p) > 4*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%+v: %g of %d images are mirrored", f, flipped, n)
		}
	}
}

// The changes of TrivialAugment are those of torchvision (testdata/trivialaugment.py).
func TestTrivialAugmentAgreesWithTorchvision(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/trivialaugment.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Shape []int
		Image []float32
		Cases []struct {
			Change   string    // such as "rotate"
			Level    int       // of 31, from none to the strongest
			Negative bool      // the opposite direction
			Strength float64   // in the unit of the change, such as degrees
			Values   []float32 // the result
		}
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	src := tensor.New(golden.Shape...)
	for i, v := range golden.Image {
		src.Data[i] = v / 255
	}
	seen := map[string]bool{}
	for _, c := range golden.Cases {
		o := augmentOp{slices.IndexFunc(augmentations, func(a augmentation) bool { return a.name == c.Change }), c.Level, c.Negative}
		seen[c.Change] = true
		if math.Abs(o.strength()-c.Strength) > 1e-5 {
			t.Errorf("%s at level %d: strength %g, want %g", c.Change, c.Level, o.strength(), c.Strength)
		}
		dst := tensor.New(golden.Shape...)
		o.Apply(dst, src)
		wrong := 0
		for i, v := range dst.Data {
			if math.Abs(float64(v-c.Values[i])) > 7e-5 {
				wrong++
			}
		}
		allowed := 0
		// At 135 degrees, the strongest, positions lie halfway between two pixels, up to rounding.
		if c.Change == "rotate" {
			allowed = len(dst.Data) / 50
		}
		if wrong > allowed {
			t.Errorf("%s: %d of %d values differ", o.Describe(), wrong, len(dst.Data))
		}
	}
	if len(seen) != len(augmentations) || len(golden.Cases) < 40 {
		t.Errorf("%d cases of %d changes, want at least 40 of all %d", len(golden.Cases), len(seen), len(augmentations))
	}
}

// Changes, levels and signs are uniform and independent.
func TestTrivialAugmentDistribution(t *testing.T) {
	t.Parallel()
	const draws = 60_000
	var changes [14]float64
	levels := map[int]float64{} // counts by level, plus 31 if negative, of changes that have a sign
	signed := 0.0               // number of draws of such changes
	for i := range draws {
		o := TrivialAugment{}.Draw(seed.Rand(1, "test", i)).(augmentOp)
		changes[o.change]++
		if augmentations[o.change].signed {
			signed++
			at := o.level
			if o.negative {
				at += augmentLevels
			}
			levels[at]++
		}
	}
	chi2 := func(counts []float64, want float64) (sum float64) {
		for _, n := range counts {
			sum += (n - want) * (n - want) / want
		}
		return sum
	}
	// The limits are 4 standard deviations above the mean of chi-squared.
	if v := chi2(changes[:], draws/14.); v > 13+4*math.Sqrt(26) {
		t.Errorf("chi-squared of the changes is %g over 13 degrees of freedom", v)
	}
	if v := chi2(slices.Collect(maps.Values(levels)), signed/62); len(levels) != 62 || v > 61+4*math.Sqrt(122) {
		t.Errorf("chi-squared of %d levels and signs is %g over 61 degrees of freedom", len(levels), v)
	}
}
