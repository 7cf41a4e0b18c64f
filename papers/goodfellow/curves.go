package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/noether-ml/noether/internal/train/autoencoder"
	"github.com/noether-ml/noether/papers/internal/tablefile"
)

// curves holds the validation curves of the layers of all networks that a command (ridge, depth or
// copies) trains. A layer that several stacks of autoencoders share has one curve.
type curves struct {
	mu   sync.Mutex
	list []curve
}

// A curve holds the validation results of a layer, epoch by epoch.
type curve struct {
	network string
	layer   int     // from 1
	decay   float64 // weight decay
	points  []autoencoder.Point
}

func (c *curves) add(network string, layer int, decay float64, l *autoencoder.Layer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, curve{network, layer, decay, l.Curve})
}

// curves writes all curves as MODEL.curves.csv, with the command as MODEL, and prints a summary. A
// plan holds the flags of the program. The column taken_back says whether an epoch was undone.
func (p plan) curves(model string, c *curves) error {
	slices.SortFunc(c.list, func(a, b curve) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.decay, b.decay), cmp.Compare(a.network, b.network))
	})
	c.print()
	rows := [][]string{{"network", "layer", "decay", "epoch", "validation_error", "objective", "taken_back"}}
	for _, one := range c.list {
		for i, p := range one.points {
			rows = append(rows, []string{one.network, strconv.Itoa(one.layer), fmt.Sprint(one.decay), strconv.Itoa(i + 1), fmt.Sprint(p.Validation), fmt.Sprint(p.Objective), fmt.Sprint(p.RolledBack)})
		}
	}
	return tablefile.Write(filepath.Join(p.out, model+".curves.csv"), rows)
}

// print prints, for each layer and decay, in how many networks the reconstruction error and J fall
// in every epoch. J is the objective that training minimises. Epochs undone because J or the error
// had increased (Point.RolledBack) do not count.
func (c *curves) print() {
	fmt.Println("| layer | decay | networks | epochs undone | error always falls | largest rise | from | to | J always falls | largest rise |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for from := 0; from < len(c.list); {
		to := from
		for to < len(c.list) && c.list[to].layer == c.list[from].layer && c.list[to].decay == c.list[from].decay {
			to++
		}
		same := c.list[from:to]
		undone, first, last := 0, 0.0, 0.0
		for _, one := range same {
			kept := one.kept()
			undone += len(one.points) - len(kept)
			first += kept[0].Validation / float64(len(same))
			last += kept[len(kept)-1].Validation / float64(len(same))
		}
		errors, rise := falling(same, func(p autoencoder.Point) float64 { return p.Validation })
		objectives, objectiveRise := falling(same, func(p autoencoder.Point) float64 { return p.Objective })
		fmt.Printf("| %d | %g | %d | %d | %d | %.4f | %.3f | %.3f | %d | %.4f |\n", same[0].layer, same[0].decay, len(same), undone, errors, rise, first, last, objectives, objectiveRise)
		from = to
	}
}

// kept returns the epochs that were not undone.
func (c *curve) kept() []autoencoder.Point {
	return slices.DeleteFunc(slices.Clone(c.points), func(p autoencoder.Point) bool { return p.RolledBack })
}

// falling returns how many curves fall in every epoch, and the largest rise of any.
func falling(list []curve, of func(autoencoder.Point) float64) (fall int, rise float64) {
	for _, one := range list {
		points, falls := one.kept(), true
		for i := range points[1:] {
			if d := of(points[i+1]) - of(points[i]); d > 0 {
				falls, rise = false, max(rise, d)
			}
		}
		if falls {
			fall++
		}
	}
	return fall, rise
}
