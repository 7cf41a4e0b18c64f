package autoattack

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/ball"
)

// sequence is the generator of testdata/golden.py.
type sequence struct{ count int }

func (s *sequence) Float32() float32 {
	s.count++
	v := float64(s.count) * 0.6180339887498949
	return float32(v - math.Floor(v))
}

func (s *sequence) IntN(n int) int { return int(float32(n) * s.Float32()) }

func (s *sequence) NormFloat64() float64 { return float64(2*s.Float32() - 1) }

type golden struct {
	Radii  map[string]float64
	Stride int
	Cases  []struct {
		Norm, Attack string
		Image, Part  int
		Queries      []int
		Values       [][]float64
	}
	Bumps      map[string][]float64
	Sides      [][2]int
	Accuracies []struct {
		Norm           string
		Radius         float64
		Images, Robust int
		Alone          map[string]int
		By             []int
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	var g golden
	data, err := os.ReadFile("testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// goldenNet and goldenImage are the network and the images of testdata/golden.py.
func goldenNet() *net {
	n := &net{}
	for i := range 24 {
		var row []float64
		for j := range 2 * 10 * 10 {
			row = append(row, float64(float32(math.Sin(1.7*float64(i)+0.9*float64(j)+0.013*float64(i*j))*0.6)))
		}
		n.a = append(n.a, row)
	}
	for k := range 10 {
		var row []float64
		for i := range 24 {
			row = append(row, float64(float32(math.Cos(2.3*float64(k)+1.1*float64(i)+0.17*float64(k*i)))))
		}
		n.b = append(n.b, row)
	}
	return n
}

func goldenImage(n int) []float32 {
	x := make([]float32, 2*10*10)
	for j := range x {
		x[j] = float32(0.5 + 0.5*math.Sin(0.37*float64(n+1)*float64(j+1)+float64(n)))
	}
	return x
}

// problem returns the attack on an image as the network classifies it.
func problem(n *net, x []float32, shape [3]int, b ball.Ball) Problem {
	z := n.scores(x)
	n.label = slices.Index(z, slices.Max(z))
	return Problem{Image: x, Shape: shape, Label: n.label, Scores: z, Ball: b}
}

// TestQueries compares the images that attacks ask the network for with those of the authors'
// package, with the same random numbers.
func TestQueries(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	for _, c := range g.Cases {
		t.Run(fmt.Sprintf("%s/%s/%d/%d", c.Norm, c.Attack, c.Image, c.Part), func(t *testing.T) {
			t.Parallel()
			a, n := attackNamed(t, c.Attack), goldenNet()
			n.loss = a.Loss
			s := &search{Problem: problem(n, goldenImage(c.Image), [3]int{2, 10, 10}, ball.Ball{Norm: ball.Norm(c.Norm), Radius: g.Radii[c.Norm]}),
				network: n, draw: &sequence{}, state: &State{}}
			for part := range max(1, slices.Max(c.Queries)/queriesPerPart) {
				if c.Attack != "square" {
					part = c.Part
				}
				if err := a.run(s, part); err != nil {
					t.Fatalf("part %d: %v; the authors' attack does not break the image", part, err)
				}
				if c.Attack != "square" {
					break
				}
			}
			for i, q := range c.Queries {
				for k, want := range c.Values[i] {
					if got := float64(n.asked[q][k*g.Stride]); math.Abs(got-want) > 2e-5 {
						t.Fatalf("query %d, value %d: %v, want %v", q, k*g.Stride, got, want)
					}
				}
			}
		})
	}
}

// TestSquares compares the bumps of Square in l2, and the sides of its squares in an image of 32 x
// 32, with those of the authors' package.
func TestSquares(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	for side, want := range g.Bumps {
		var n int
		if _, err := fmt.Sscan(side, &n); err != nil {
			t.Fatal(err)
		}
		s := &search{draw: &zeros{}}
		got := s.bump(n)
		for i, v := range want {
			if math.Abs(float64(got[i])-v) > 1e-6 {
				t.Errorf("side %d: %v, want %v", n, got, want)
				break
			}
		}
	}
	s := &search{Problem: Problem{Shape: [3]int{3, 32, 32}}}
	for _, c := range g.Sides {
		if got := s.side(c[0]); got != c[1] {
			t.Errorf("query %d: side %d, want %d", c[0], got, c[1])
		}
	}
}

func (*zeros) IntN(int) int { return 0 }
