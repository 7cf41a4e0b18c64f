// Package autoattack computes the four attacks of the standard version of AutoAttack (Croce and
// Hein 2020, "Reliable evaluation of adversarial robustness with an ensemble of diverse
// parameter-free attacks"), each on one image x of c x h x w with values in [0, 1]:
//
//	APGD-CE  ascends the cross-entropy -log p_y
//	APGD-T   ascends the targeted difference of logits ratio, (z_t - z_y) / (z_1 - (z_3 + z_4) / 2)
//	FAB-T    steps onto the hyperplane that approximates z_t = z_y (Croce and Hein 2020, "Minimally
//	         distorted adversarial examples with a fast adaptive boundary attack")
//	Square   draws squares at random, without gradients (Andriushchenko et al. 2020)
//
// z are the class scores, y is the label, z_1 >= z_2 >= ... are the sorted scores, and t is each of
// the nine classes with the largest scores at x other than y. An attack breaks x if it finds an
// image in the ball around x for which y is not the class with the largest score. Where the paper
// and the authors' code (version 0.1) differ, the attacks do what the code does.
//
// An attack is a sequential search on one image, which asks a Network for class scores and
// gradients. Attacks are made of parts, such as one for each t, so that their work can be resumed:
//
//	for part := range attack.Parts(classes) {
//		result, err := attack.Run(network, problem, part, draw, &state)
//		if err != nil || result.Broken {
//			break
//		}
//	}
package autoattack

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/internal/ball"
)

// A Loss is a function of the class scores that an attack takes the gradient of.
type Loss int

// The losses.
const (
	None         Loss = iota // the attack needs no gradient
	CrossEntropy             // -log p_y
	TargetedDLR              // (z_t - z_y) / (z_1 - (z_3 + z_4) / 2)
	Difference               // z_t - z_y
)

// A Network computes class scores of images, c x h x w. It does not keep x, and what it returns
// belongs to the caller.
type Network interface {
	// Scores returns the class scores of x. Attacks use their differences only, so they may be
	// logits or logarithms of probabilities.
	Scores(x []float32) ([]float32, error)
	// Gradient returns the class scores and the gradient of the attack's Loss by x. Gradients of
	// CrossEntropy and TargetedDLR may have any positive factor.
	Gradient(x []float32, target int) (scores, gradient []float32, err error)
}

// A Problem is an image to attack, which the network classifies correctly.
type Problem struct {
	Image  []float32 // c x h x w, with values in [0, 1]
	Shape  [3]int    // c, h, w
	Label  int
	Scores []float32 // of Image
	Ball   ball.Ball // around Image
}

// A State is what one part of an attack leaves for the next. The zero State is that of the first.
type State struct {
	Image  []float32 // the best image so far, if later parts need it
	Margin float64   // its score of the label minus the largest of another class
}

// A Result is the outcome of a part.
type Result struct {
	Broken    bool // an image of another class was found
	NonFinite bool // scores or a gradient were NaN or infinite
	Flat      bool // the gradient at the start was zero, so the attack stayed there
}

// An Attack is one of the four.
type Attack struct {
	Name   string // such as "apgd-ce"
	Loss   Loss
	Random bool // it uses the generator of Run
	parts  func(classes int) int
	passes work // of a part
	run    func(*search, int) error
}

type work struct{ scores, gradients int }

// minDLR is the number of scores in the denominator of TargetedDLR.
const minDLR = 4

// Standard returns the attacks in the order of the protocol: each attacks the images that those
// before it have not broken.
func Standard() []Attack {
	targets := func(classes int) int { return max(0, min(maxTargets, classes-1)) }
	return []Attack{
		{"apgd-ce", CrossEntropy, true, func(int) int { return 1 }, work{0, steps + 1},
			func(s *search, _ int) error { return s.apgd(s.crossEntropy, s.Label) }},
		{"apgd-t", TargetedDLR, true, func(classes int) int {
			if classes < minDLR {
				return 0
			}
			return targets(classes)
		}, work{0, steps + 1}, func(s *search, part int) error {
			t := s.target(part)
			return s.apgd(func(z []float32) float64 { return s.targetedDLR(z, t) }, t)
		}},
		{"fab-t", Difference, false, targets, work{steps, steps},
			func(s *search, part int) error { return s.fab(s.target(part)) }},
		{"square", None, true, func(int) int { return queries / queriesPerPart }, work{queriesPerPart, 0}, (*search).square},
	}
}

const (
	steps      = 100 // of a part of APGD and FAB
	maxTargets = 9
)

// Parts returns the number of parts for a number of classes. APGD-T has none for fewer than four:
// its loss needs the fourth largest score.
func (a Attack) Parts(classes int) int { return a.parts(classes) }

// Passes returns the largest number of evaluations of Network.Scores and Network.Gradient in a
// part, without those that confirm a success.
func (a Attack) Passes() (scores, gradients int) { return a.passes.scores, a.passes.gradients }

// Run runs a part. draw is not used unless a.Random. The error is one of n.
func (a Attack) Run(n Network, p Problem, part int, draw *rand.Rand, state *State) (Result, error) {
	s := &search{Problem: p, network: n, draw: draw, state: state}
	err := a.run(s, part)
	switch {
	case errors.Is(err, errBroken):
		s.result.Broken = true
	case errors.Is(err, errNonFinite):
		s.result.NonFinite = true
	case err != nil:
		return Result{}, err
	}
	return s.result, nil
}

// A search is a part of an attack in progress.
type search struct {
	Problem
	network Network
	draw    generator
	state   *State
	result  Result
}

// A generator is the part of rand.Rand that attacks use.
type generator interface {
	IntN(n int) int
	Float32() float32
	NormFloat64() float64
}

// Reasons to end a part.
var (
	errBroken    = errors.New("broken")
	errNonFinite = errors.New("not finite")
)

// target returns the class with the (i + 2)-th largest score at the image, where the label has the
// largest. Of equal scores the first is the larger.
func (s *search) target(i int) int {
	var others []int
	for k := range s.Scores {
		if k != s.Label {
			others = append(others, k)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int {
		switch {
		case s.Scores[a] > s.Scores[b]:
			return -1
		case s.Scores[a] < s.Scores[b]:
			return 1
		}
		return 0
	})
	return others[i]
}

// gradient returns the class scores and the gradient at x. It ends the part if they are not finite,
// or if x is of another class; Scores, which has no gradient to compute, has the last word on that.
func (s *search) gradient(x []float32, target int) (z, g []float32, err error) {
	if z, g, err = s.network.Gradient(x, target); err != nil {
		return nil, nil, err
	}
	if !finite(z) || !finite(g) {
		return nil, nil, errNonFinite
	}
	if s.margin(z) > 0 {
		return z, g, nil
	}
	confirmed, err := s.network.Scores(x)
	if err == nil && s.broken(confirmed) {
		err = errBroken
	}
	return z, g, err
}

// margin returns the score of the label minus the largest of another class; NaN if one is NaN.
func (s *search) margin(z []float32) float64 {
	other := math.Inf(-1)
	for k, v := range z {
		if k != s.Label {
			other = max(other, float64(v))
		}
	}
	return float64(z[s.Label]) - other
}

// broken reports whether scores predict another class than the label: of equal scores, the first
// one's. NaN predicts nothing.
func (s *search) broken(z []float32) bool {
	if !finite(z) {
		return false
	}
	for k, v := range z {
		if v > z[s.Label] || v == z[s.Label] && k < s.Label {
			return true
		}
	}
	return false
}

func finite(v []float32) bool {
	for _, x := range v {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// crossEntropy returns log(1 + sum over k of exp(z_k - z_y)), k not y.
func (s *search) crossEntropy(z []float32) float64 {
	y := float64(z[s.Label])
	largest := max(0, -s.margin(z))
	sum := 0.0
	for k, v := range z {
		if k != s.Label {
			sum += math.Exp(float64(v) - y - largest)
		}
	}
	if largest == 0 {
		return math.Log1p(sum)
	}
	return largest + math.Log(math.Exp(-largest)+sum)
}

// tiny is added to divisors, as in the authors' code.
const tiny = 1e-12

// targetedDLR returns (z_t - z_y) / (z_1 - (z_3 + z_4) / 2).
func (s *search) targetedDLR(z []float32, t int) float64 {
	sorted := slices.Sorted(slices.Values(z))
	largest := func(i int) float64 { return float64(sorted[len(sorted)-i]) }
	return (float64(z[t]) - float64(z[s.Label])) / (largest(1) - (largest(3)+largest(4))/2 + tiny)
}

// norm returns the norm of the ball of a - b.
func (s *search) norm(a, b []float32) float64 {
	var sum, largest float64
	for i, v := range a {
		d := math.Abs(float64(v) - float64(b[i]))
		sum += d * d
		largest = max(largest, d)
	}
	if s.Ball.Norm == ball.Linf {
		return largest
	}
	return math.Sqrt(sum)
}

func clip(v float32) float32 { return min(max(v, 0), 1) }

func zero(v []float32) bool { return !slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) }
