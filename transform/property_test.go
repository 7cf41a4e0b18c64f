package transform

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// randomImage returns an image of random values in [0, 1).
func randomImage(base uint64, shape ...int) tensor.Tensor {
	x, r := tensor.New(shape...), seed.Rand(base, "image")
	for i := range x.Data {
		x.Data[i] = r.Float32()
	}
	return x
}

// imageKinds returns the kinds of transform that apply to images.
func imageKinds() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k.Audio })
}

// drawImage returns a random image of up to 5 channels and 12 x 12 pixels.
func drawImage(t *rapid.T) tensor.Tensor {
	c := rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(t, "channels")
	side := rapid.IntRange(1, 12)
	return randomImage(rapid.Uint64().Draw(t, "image"), c, side.Draw(t, "h"), side.Draw(t, "w"))
}

// drawSquare returns a random RGB image of equal height and width, up to 12 pixels.
func drawSquare(t *rapid.T) tensor.Tensor {
	side := rapid.IntRange(1, 12).Draw(t, "side")
	return randomImage(rapid.Uint64().Draw(t, "image"), 3, side, side)
}

// drawTransform returns a transform of images, of any kind (such as rotate) with any valid
// arguments.
func drawTransform(t *rapid.T) Transform {
	k := rapid.SampledFrom(imageKinds()).Draw(t, "kind")
	args := Args{}
	for _, p := range k.Params {
		if p.Required || rapid.Bool().Draw(t, p.Name+" is set") {
			args[p.Name] = drawArg(t, p)
		}
	}
	repairArgs(k, args)
	tr, err := k.Make(args)
	if err != nil {
		t.Fatalf("%s %v: %v", k.Name, args, err)
	}
	return tr
}

// drawArg returns a random argument that the parameter accepts: a word, a number or a range.
func drawArg(t *rapid.T, p Param) Arg {
	if p.Options != nil {
		return Option(rapid.SampledFrom(p.Options).Draw(t, p.Name))
	}
	low, high := max(p.Min, -1e6), min(p.Max, 1e6)
	if p.Name == "probability" { // a small one would give the same result nearly always
		return Fixed(rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, p.Name))
	}
	if p.Name == "kernel" { // the size must be odd
		return Fixed(float64(2*rapid.IntRange(0, 12).Draw(t, p.Name) + 1))
	}
	if p.Above { // p.Min is excluded
		low = math.SmallestNonzeroFloat64
	}
	number := rapid.Float64Range(low, high)
	a, b := number.Draw(t, p.Name), number.Draw(t, p.Name)
	if p.Constant || rapid.Bool().Draw(t, p.Name+" is fixed") {
		return Fixed(a)
	}
	return Uniform(min(a, b), max(a, b))
}

// repairArgs removes one of two parameters that exclude each other, and adds a crop's area if it
// has neither area nor side.
func repairArgs(k Kind, args Args) {
	if args["outside"] == Option("reflect") || args["outside"] == Option("wrap") {
		delete(args, "fill")
	}
	if k.Name != "crop" {
		return
	}
	if args["area"] == nil && args["side"] == nil {
		args["area"] = Fixed(0.5)
	}
	if args["area"] != nil {
		delete(args, "side")
	}
}

// Every Op, a transformation whose parameters are drawn, writes all of dst with finite values and
// does not change src. Results are the same each time, also in several goroutines at once. apply,
// of golden_test.go, fills dst with NaN beforehand.
func TestApplyIsFiniteAndDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr, src := drawTransform(t), drawImage(t)
		op := tr.Draw(seed.Rand(1, "a"))
		before := src.Clone()
		var results [3]tensor.Tensor
		var group sync.WaitGroup
		for i := range results {
			group.Go(func() { results[i] = apply(op, src) })
		}
		group.Wait()
		if i := results[0].FirstNonFinite(); i >= 0 {
			t.Fatalf("%+v: value %d is %g", op, i, results[0].Data[i])
		}
		if !slices.Equal(results[0].Data, results[1].Data) || !slices.Equal(results[0].Data, results[2].Data) {
			t.Fatalf("%+v: results of goroutines differ", op)
		}
		if !slices.Equal(before.Data, src.Data) {
			t.Fatalf("%+v: src has changed", op)
		}
	})
}

// TestDrawDependsOnGenerator checks that Transform.Draw gives equal Ops for equal seeds and, if the
// transform is random, different ones for different seeds.
func TestDrawDependsOnGenerator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTransform(t)
		if !Random(tr) {
			tr.Draw(nil) // must not use the generator
			return
		}
		a, b := tr.Draw(seed.Rand(1, "a")), tr.Draw(seed.Rand(1, "a"))
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("two generators with the same seed draw %+v and %+v", a, b)
		}
		for i := range 30 { // several seeds, as a narrow range may hold few numbers
			if !reflect.DeepEqual(a, tr.Draw(seed.Rand(1, i))) {
				return
			}
		}
		t.Fatalf("30 generators with different seeds all draw %+v", a)
	})
}

// If Permutes reports true, the result holds the same values in another order.
func TestPermutationsKeepValues(t *testing.T) {
	t.Parallel()
	permuted := 0
	rapid.Check(t, func(t *rapid.T) {
		src := drawImage(t)
		tr := rapid.OneOf(
			rapid.Map(rapid.IntRange(-4, 4), func(k int) Transform { return Rotate{Angle: Fixed(90 * float64(k))} }),
			rapid.Map(rapid.Bool(), func(v bool) Transform { return Flip{v} }),
			rapid.Custom(drawTransform),
		)
		op := Sequence{tr.Draw(t, "first"), tr.Draw(t, "second")}.Draw(seed.Rand(1))
		if !Permutes(op, src.Shape[1], src.Shape[2]) {
			return
		}
		permuted++
		got, want := slices.Clone(apply(op, src).Data), slices.Clone(src.Data)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v does not permute the values, but Permutes is true", op)
		}
	})
	if permuted == 0 {
		t.Error("no permutation was tried")
	}
}

func TestPermutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t            Transform
		square, wide bool // whether it permutes the values of 8 x 8 and of 8 x 12 pixels
	}{
		{Identity{}, true, true},
		{Flip{}, true, true},
		{Rotate{Angle: Fixed(90)}, true, false},
		{Rotate{Angle: Fixed(-180)}, true, true},
		{Rotate{Angle: Fixed(45)}, false, false},
		{Affine{Rotate: Fixed(270), Scale: Fixed(1)}, true, false},
		{Affine{Scale: Fixed(1.1)}, false, false},
		{Translate{X: Fixed(0.25)}, false, false},
		{Shear{X: Fixed(1)}, false, false},
		{Crop{Size: Fixed(1)}, true, true},
		{Crop{Size: Fixed(0.5)}, false, false},
		{Sequence{}, true, true},
		{Sequence{Flip{}, Rotate{Angle: Fixed(90)}}, true, false},
		{Sequence{Flip{}, Grayscale{}}, false, false},
		{GaussianBlur{Sigma: Fixed(1)}, false, false},
	} {
		op := c.t.Draw(nil)
		if got := Permutes(op, 8, 8); got != c.square {
			t.Errorf("%+v on a square: Permutes is %v; want %v", op, got, c.square)
		}
		if got := Permutes(op, 8, 12); got != c.wide {
			t.Errorf("%+v on a rectangle: Permutes is %v; want %v", op, got, c.wide)
		}
	}
}

func TestQuarterTurnsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := drawSquare(t)
		n := src.Shape[1]
		op := Rotate{Angle: Fixed(90)}.Draw(nil)
		x := apply(op, src)
		for i := range n {
			for j := range n {
				if x.Data[i*n+j] != src.Data[j*n+n-1-i] { // the right column becomes the top row
					t.Fatalf("wrong at row %d, column %d", i, j)
				}
			}
		}
		for range 3 {
			x = apply(op, x)
		}
		if !slices.Equal(x.Data, src.Data) {
			t.Fatal("four quarter turns are not the identity")
		}
		// warp, the general method by interpolation, is exact too.
		o := op.(rotateOp)
		general := tensor.New(src.Shape...)
		o.warp(general, src, o.inverse(n, n))
		if !slices.Equal(general.Data, apply(op, src).Data) {
			t.Fatal("interpolation at 90 degrees is not exact")
		}
	})
}

func TestFlipsAreInvolutions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src, op := drawImage(t), Flip{rapid.Bool().Draw(t, "vertical")}
		if !slices.Equal(apply(op, apply(op, src)).Data, src.Data) {
			t.Fatal("flipping twice is not the identity")
		}
	})
}

func TestWholePixelTranslationIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, w := rapid.IntRange(1, 120).Draw(t, "h"), rapid.IntRange(1, 120).Draw(t, "w")
		down, right := rapid.IntRange(-h, h).Draw(t, "down"), rapid.IntRange(-w, w).Draw(t, "right")
		src := randomImage(7, 1, h, w)
		op := Translate{X: Fixed(float64(right) / float64(w)), Y: Fixed(float64(down) / float64(h))}.Draw(nil)
		got := apply(op, src)
		for i := range h {
			for j := range w {
				var want float32
				if y, x := i-down, j-right; y >= 0 && y < h && x >= 0 && x < w {
					want = src.Data[y*w+x]
				}
				if got.Data[i*w+j] != want {
					t.Fatalf("row %d, column %d: %g, want %g", i, j, got.Data[i*w+j], want)
				}
			}
		}
	})
}

// If positions outside the image are filled by reflection, values stay within the range of the
// image.
func TestReflectionKeepsTheRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := drawImage(t)
		angle, shear := rapid.Float64Range(-360, 360), rapid.Float64Range(-60, 60)
		op := Affine{
			Rotate: Fixed(angle.Draw(t, "rotate")), X: Fixed(rapid.Float64Range(-1, 1).Draw(t, "x")),
			Scale: Fixed(rapid.Float64Range(0.05, 5).Draw(t, "scale")), ShearX: Fixed(shear.Draw(t, "shear")),
			Sampling: Sampling{Outside: Reflection, Nearest: rapid.Bool().Draw(t, "nearest")},
		}.Draw(nil)
		got := apply(op, src)
		const rounding = 1e-6
		if slices.Min(got.Data) < slices.Min(src.Data)-rounding || slices.Max(got.Data) > slices.Max(src.Data)+rounding {
			t.Fatalf("%+v: values leave the range of the image", op)
		}
	})
}

func TestSequenceIsComposition(t *testing.T) {
	t.Parallel()
	steps := Sequence{Rotate{Angle: Uniform(-30, 30)}, Brightness{Fixed(0.8)}, GaussianNoise{Fixed(0.1)}, Flip{}, Contrast{Fixed(1.5)}}
	for n := range len(steps) + 1 {
		src := randomImage(3, 3, 9, 7)
		got := apply(steps[:n].Draw(seed.Rand(5)), src)
		want, r := src, seed.Rand(5)
		for _, m := range steps[:n] {
			want = apply(m.Draw(r), want)
		}
		if !slices.Equal(got.Data, want.Data) {
			t.Errorf("a sequence of %d differs from its steps applied in turn", n)
		}
	}
}

// drawOnly is a transform without the optional methods, such as OnMaps, which reports whether it
// acts on feature maps.
type drawOnly struct{}

func (drawOnly) Draw(*rand.Rand) Op { return nil }

// TestProperties checks OnMaps, Random (it draws random numbers), OnAudio and OnImages (it applies
// to audio or images) and Parameter for every kind. k.Short is the list of parameters that a bare
// value in a study file (which says what is measured) sets, such as the angle in "rotate: 90".
// mustMake, of golden_test.go, makes a transform of a kind.
func TestProperties(t *testing.T) {
	t.Parallel()
	onMaps := map[string]bool{}
	for _, k := range Kinds() {
		args := Args{}
		if k.Name == "white-noise" {
			args["snr"] = Fixed(0.5)
		}
		for _, p := range k.Params {
			switch {
			case p.Required && p.Options != nil:
				args[p.Name] = Option(p.Options[0])
			case p.Required || p.Name == "area":
				args[p.Name] = Fixed(max(0.5, p.Min))
			}
		}
		tr := mustMake(t, k.Name, args)
		onMaps[k.Name] = OnMaps(tr)
		if random := slices.Contains([]string{"gaussian-noise", "replace", "corrupt", "random-crop", "trivial-augment", "time-stretch", "white-noise", "reverb"}, k.Name); Random(tr) != random {
			t.Errorf("%s with fixed parameters: Random is %v; want %v", k.Name, Random(tr), random)
		}
		if onAudio := k.Audio || k.Name == "identity"; OnAudio(tr) != onAudio || OnImages(tr) == k.Audio {
			t.Errorf("%s: OnAudio is %v and OnImages is %v; want %v and %v", k.Name, OnAudio(tr), OnImages(tr), onAudio, !k.Audio)
		}
		v, ok := Parameter(tr.Draw(seed.Rand(1)))
		want, hasParameter := 0.5, len(k.Short) == 1 && args[k.Short[0]] != nil && k.Name != "shear" && k.Name != "random-crop"
		if hasParameter {
			p, _ := k.Param(k.Short[0])
			want = max(want, p.Min)
		}
		if k.Name == "corrupt" {
			want, hasParameter = 1, true
		}
		if ok != hasParameter || ok && v != want {
			t.Errorf("%s: Parameter returns %g, %v; want %g, %v", k.Name, v, ok, want, hasParameter)
		}
	}
	for name, got := range onMaps {
		kind, _ := Lookup(name)
		notOnMaps := kind.Audio || slices.Contains([]string{"grayscale", "brightness", "contrast", "gaussian-noise", "corrupt", "hue", "saturation", "jpeg", "trivial-augment"}, name)
		if got == notOnMaps {
			t.Errorf("%s: OnMaps is %v; want %v", name, got, !notOnMaps)
		}
	}
	if OnMaps(Sequence{Flip{}, Grayscale{}}) || !OnMaps(Sequence{Flip{}, Identity{}}) {
		t.Error("OnMaps of a sequence is not the conjunction of its members'")
	}
	if !Random(Sequence{Flip{}, Rotate{Angle: Uniform(0, 1)}}) || Random(Sequence{Flip{}}) {
		t.Error("Random of a sequence is not the disjunction of its members'")
	}
	if OnMaps(drawOnly{}) || !Random(drawOnly{}) {
		t.Error("a transform without the optional methods is accepted on feature maps, or counts as not random")
	}
}

// TestApplyPanicsOnShapes checks that dst and src must have the same shape, of rank 3.
func TestApplyPanicsOnShapes(t *testing.T) {
	t.Parallel()
	for _, shapes := range [][2][]int{{{3, 4, 4}, {3, 4, 5}}, {{4, 4}, {4, 4}}, {{1, 3, 4, 4}, {1, 3, 4, 4}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for shapes %v", shapes)
				}
			}()
			Identity{}.Apply(tensor.New(shapes[0]...), tensor.New(shapes[1]...))
		}()
	}
}
