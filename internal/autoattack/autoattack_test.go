package autoattack

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/ball"
	"github.com/noether-ml/noether/internal/seed"
)

// A net is a network of two layers, tanh(A (x - 0.5)) B, or of one, A x, computed in float64. It
// records the images that it is asked for.
type net struct {
	a, b  [][]float64 // b: nil for one layer
	loss  Loss
	label int
	asked [][]float32
}

func (n *net) hidden(x []float32) []float64 {
	h := make([]float64, len(n.a))
	for i, row := range n.a {
		for j, v := range x {
			if n.b == nil {
				h[i] += row[j] * float64(v)
			} else {
				h[i] += row[j] * float64(v-0.5)
			}
		}
		if n.b != nil {
			h[i] = math.Tanh(h[i])
		}
	}
	return h
}

func (n *net) Scores(x []float32) ([]float32, error) {
	n.asked = append(n.asked, slices.Clone(x))
	return n.scores(x), nil
}

func (n *net) scores(x []float32) []float32 {
	var z []float32
	h := n.hidden(x)
	if n.b == nil {
		for _, v := range h {
			z = append(z, float32(v))
		}
		return z
	}
	for _, row := range n.b {
		sum := 0.0
		for i, v := range h {
			sum += row[i] * v
		}
		z = append(z, float32(sum))
	}
	return z
}

func (n *net) Gradient(x []float32, target int) (scores, gradient []float32, err error) {
	n.asked = append(n.asked, slices.Clone(x))
	z := n.scores(x)
	dz := make([]float64, len(z))
	switch n.loss {
	case CrossEntropy: // r - onehot(y), where r is the softmax without y
		largest, total := math.Inf(-1), 0.0
		for k, v := range z {
			if k != n.label {
				largest = max(largest, float64(v))
			}
		}
		for k, v := range z {
			if k != n.label {
				dz[k] = math.Exp(float64(v) - largest)
				total += dz[k]
			}
		}
		for k := range dz {
			dz[k] /= total
		}
		dz[n.label] = -1
	case TargetedDLR:
		order := make([]int, len(z))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if z[a] > z[b] {
				return -1
			}
			return 1
		})
		ratio := float64(z[target]-z[n.label]) / (float64(z[order[0]]) - float64(z[order[2]]+z[order[3]])/2)
		dz[order[0]] -= ratio
		dz[order[2]] += ratio / 2
		dz[order[3]] += ratio / 2
		fallthrough
	default:
		dz[target]++
		dz[n.label]--
	}
	h := n.hidden(x)
	dh := dz
	if n.b != nil {
		dh = make([]float64, len(h))
		for k, row := range n.b {
			for i := range h {
				dh[i] += dz[k] * row[i] * (1 - h[i]*h[i])
			}
		}
	}
	g := make([]float32, len(x))
	for j := range g {
		sum := 0.0
		for i, row := range n.a {
			sum += dh[i] * row[j]
		}
		g[j] = float32(sum)
	}
	return z, g, nil
}

func attackNamed(t *testing.T, name string) Attack {
	t.Helper()
	i := slices.IndexFunc(Standard(), func(a Attack) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("no attack %q", name)
	}
	return Standard()[i]
}

// zeros is a generator of the number 0.
type zeros struct{ sequence }

// breaks reports whether an attack with all its parts breaks an image.
func breaks(t *testing.T, a Attack, n *net, p Problem) bool {
	t.Helper()
	n.loss = a.Loss
	var state State
	for part := range a.Parts(len(p.Scores)) {
		n.asked = nil
		result, err := a.Run(n, p, part, seed.Rand(1, a.Name, part), &state)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range n.asked {
			for i, v := range x {
				if !(v >= 0 && v <= 1) {
					t.Fatalf("%s asks for an image with the value %v", a.Name, v)
				}
				if d := math.Abs(float64(v - p.Image[i])); a.Name != "fab-t" && p.Ball.Norm == ball.Linf && d > p.Ball.Radius*(1+1e-5) {
					t.Fatalf("%s asks for an image that differs by %v, radius %v", a.Name, d, p.Ball.Radius)
				}
			}
		}
		if result.Broken {
			return true
		}
	}
	return false
}

// TestAccuracies compares the robust accuracy under each attack alone, and under all of them, with
// that of the authors' package with other random numbers.
func TestAccuracies(t *testing.T) {
	t.Parallel()
	for _, c := range readGolden(t).Accuracies {
		n, robust := goldenNet(), map[string]int{}
		for i := range c.Images {
			p := problem(n, goldenImage(i), [3]int{2, 10, 10}, ball.Ball{Norm: ball.Norm(c.Norm), Radius: c.Radius})
			all := true
			for _, a := range Standard() {
				if breaks(t, a, n, p) {
					all = false
				} else {
					robust[a.Name]++
				}
			}
			if all {
				robust["all"]++
			}
			if all != (c.By[i] == 1) {
				t.Errorf("%s: image %d is robust: %v; of the authors' attacks: %v", c.Norm, i, all, c.By[i] == 1)
			}
		}
		for name, want := range c.Alone {
			if got := robust[name]; max(got-want, want-got) > 2 {
				t.Errorf("%s: %d of %d images are robust under %s, want %d", c.Norm, got, c.Images, name, want)
			}
		}
	}
}

// TestLinear compares attacks on a linear network of ten classes with its exact robustness: the
// distance to class k is (z_y - z_k) / |w_y - w_k|, in the dual norm, and no value reaches 0 or 1.
func TestLinear(t *testing.T) {
	t.Parallel()
	draw := seed.Rand(3)
	n := &net{}
	for range 10 {
		row := make([]float64, 2*5*5)
		for j := range row {
			row[j] = float64(float32(draw.NormFloat64()))
		}
		n.a = append(n.a, row)
	}
	for _, norm := range []ball.Norm{ball.L2, ball.Linf} {
		counts := map[string][2]int{}
		for range 16 {
			x := make([]float32, 2*5*5)
			for i := range x {
				x[i] = 0.3 + 0.4*draw.Float32()
			}
			p := problem(n, x, [3]int{2, 5, 5}, ball.Ball{Norm: norm, Radius: 1})
			distance := math.Inf(1)
			for k, row := range n.a {
				if k == p.Label {
					continue
				}
				var z, dual float64
				for j, v := range row {
					d := n.a[p.Label][j] - v
					z += d * float64(x[j])
					if norm == ball.L2 {
						dual += d * d
					} else {
						dual += math.Abs(d)
					}
				}
				if norm == ball.L2 {
					dual = math.Sqrt(dual)
				}
				distance = min(distance, z/dual)
			}
			if far := map[ball.Norm]float64{ball.L2: 0.5, ball.Linf: 0.15}[norm]; distance > far || distance < 1e-3 {
				continue // a value could reach 0 or 1, or float32 not suffice
			}
			for _, a := range Standard() {
				// Without targets APGD ascends to any class, FAB steps a little too far, and random
				// squares do not find the direction exactly.
				reach := map[string]float64{"apgd-ce": 1.5, "apgd-t": 1.002, "fab-t": 1.02, "square": 2.5}[a.Name]
				p.Ball.Radius = distance * 0.999
				if breaks(t, a, n, p) {
					t.Errorf("%s, %s: breaks an image at %v of its distance to the boundary", norm, a.Name, 0.999)
				}
				p.Ball.Radius = distance * reach
				count := counts[a.Name]
				if count[0]++; breaks(t, a, n, p) {
					count[1]++
				}
				counts[a.Name] = count
			}
		}
		for _, a := range Standard() {
			c := counts[a.Name]
			if c[0] < 12 || c[1] < c[0] && (a.Name == "apgd-t" || a.Name == "fab-t") || c[1] < c[0]*8/10 {
				t.Errorf("%s, %s: breaks %d of %d images beyond the boundary", norm, a.Name, c[1], c[0])
			}
		}
	}
}

// TestToHyperplane checks that the result lies on the hyperplane or, if it is out of reach, at the
// end of [0, 1], and that no other point found by bisection is closer.
func TestToHyperplane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		norm := rapid.SampledFrom([]ball.Norm{ball.L2, ball.Linf}).Draw(t, "norm")
		size := rapid.IntRange(1, 40).Draw(t, "size")
		x, w := make([]float32, size), make([]float32, size)
		for i := range x {
			x[i], w[i] = draw.Float32(), float32(draw.NormFloat64())
			switch draw.IntN(6) {
			case 0:
				x[i] = float32(draw.IntN(2))
			case 1:
				w[i] = 0
			}
		}
		c := draw.NormFloat64() * math.Pow(10, float64(rapid.IntRange(-3, 2).Draw(t, "scale")))
		d := toHyperplane(norm, x, w, c)
		value := func(d []float32) float64 {
			sum := c
			for i, v := range w {
				if y := x[i] + d[i]; y < -1e-6 || y > 1+1e-6 {
					t.Fatalf("value %v is outside [0, 1]", y)
				}
				sum += float64(v) * float64(d[i])
			}
			return sum
		}
		// The smallest s of the form in the comment, by bisection.
		at := func(s float64) []float32 {
			out := make([]float32, size)
			for i, v := range w {
				step := s
				if norm == ball.L2 {
					step *= math.Abs(float64(v))
				}
				if (c < 0) == (v > 0) {
					out[i] = float32(min(step, 1-float64(x[i])))
				} else {
					out[i] = -float32(min(step, float64(x[i])))
				}
				if v == 0 {
					out[i] = 0
				}
			}
			return out
		}
		low, high := 0.0, 1e9
		for range 200 {
			middle := (low + high) / 2
			if value(at(middle))*c > 0 {
				low = middle
			} else {
				high = middle
			}
		}
		want := at(high)
		for i, v := range d {
			if math.Abs(float64(v-want[i])) > 1e-4 {
				t.Fatalf("d = %v, want %v", d, want)
			}
		}
		if reachable := value(at(1e9))*c <= 0; reachable && math.Abs(value(d)) > 1e-4*(1+math.Abs(c)) {
			t.Fatalf("the result is %v from the hyperplane", value(d))
		}
	})
}

// TestFlat checks that attacks by gradients end at once where the gradient is zero, and that Square
// does not need it.
func TestFlat(t *testing.T) {
	t.Parallel()
	n := &steep{}
	p := Problem{Image: slices.Repeat([]float32{0.5}, 25), Shape: [3]int{1, 5, 5}, Scores: []float32{1, 0, 0, 0}, Ball: ball.Ball{Norm: ball.Linf, Radius: 0.1}}
	for _, a := range Standard() {
		n.asked = 0
		var state State
		result, err := a.Run(n, p, 0, seed.Rand(1), &state)
		if err != nil {
			t.Fatal(err)
		}
		if a.Loss == None != result.Broken || a.Loss == None == result.Flat || a.Loss != None && n.asked != 1 {
			t.Errorf("%s: %+v after %d queries", a.Name, result, n.asked)
		}
	}
}

// steep is a network without gradient: the class is 0 unless the values fall by 1 in all.
type steep struct{ asked int }

func (n *steep) Scores(x []float32) ([]float32, error) {
	n.asked++
	var sum float32
	for _, v := range x {
		sum += v
	}
	return []float32{sum - 11.5, 0, 0, 0}, nil
}

func (n *steep) Gradient(x []float32, _ int) (scores, gradient []float32, err error) {
	z, err := n.Scores(x)
	return z, make([]float32, len(x)), err
}

// TestNonFinite checks that NaN ends attacks by gradients, is skipped by Square, and breaks
// nothing; and that an error of the network is returned.
func TestNonFinite(t *testing.T) {
	t.Parallel()
	p := Problem{Image: slices.Repeat([]float32{0.5}, 25), Shape: [3]int{1, 5, 5}, Scores: []float32{1, 0, 0, 0}, Ball: ball.Ball{Norm: ball.L2, Radius: 0.1}}
	for _, a := range Standard() {
		for _, bad := range [][]float32{{float32(math.NaN()), 0, 0, 0}, {1, float32(math.Inf(1)), 0, 0}} {
			result, err := a.Run(constant{scores: bad}, p, 0, seed.Rand(1), &State{})
			if err != nil || result.Broken || !result.NonFinite {
				t.Errorf("%s with scores %v: %+v, %v", a.Name, bad, result, err)
			}
		}
		want := errors.New("stopped")
		if _, err := a.Run(constant{err: want}, p, 0, seed.Rand(1), &State{}); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", a.Name, err, want)
		}
	}
}

// constant is a network with the same scores for every image, or an error.
type constant struct {
	scores []float32
	err    error
}

func (c constant) Scores([]float32) ([]float32, error) { return c.scores, c.err }

func (c constant) Gradient(x []float32, _ int) (scores, gradient []float32, err error) {
	return c.scores, slices.Repeat([]float32{1}, len(x)), c.err
}

// TestFewClasses checks the number of parts, which are target classes of two attacks.
func TestFewClasses(t *testing.T) {
	t.Parallel()
	for classes, want := range map[int][4]int{2: {1, 0, 1, 50}, 3: {1, 0, 2, 50}, 4: {1, 3, 3, 50}, 10: {1, 9, 9, 50}, 1000: {1, 9, 9, 50}} {
		for i, a := range Standard() {
			if got := a.Parts(classes); got != want[i] {
				t.Errorf("%d classes: %s has %d parts, want %d", classes, a.Name, got, want[i])
			}
		}
	}
}
