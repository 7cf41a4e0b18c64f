package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A group is a row of a table: the kinds of the two networks, and the layer. The reference is the
// network whose representation the inversion matches. A group of single networks has no other.
type group struct {
	reference, other string
	depth            int
	layer            string
}

// groups holds the pairs of networks of each group.
type groups map[group]pairs

// pairs holds the scores of pairs of networks by the seeds of the two, such as "1+2".
type pairs map[string]*pair

// A pair holds the scores of two networks of all trials, and of both directions if the networks are
// of one kind; or those of one network.
type pair struct {
	networks []string
	rows     []scores.Row
}

// networkName matches the name of a network: its kind, its seed, and perhaps the number of its
// training images.
var networkName = regexp.MustCompile(`^(.+?)-(\d+)(-\d+)?$`)

// add adds the scores of a run. A network in two pairs of a group is an error, and so is a name
// without kind and seed.
func (g groups) add(rows []scores.Row) error {
	for _, r := range rows {
		if r.Measure != "stir" && r.Measure != "robust-accuracy" || r.Trial == scores.MeanOverTrials {
			continue
		}
		names := []string{r.Model}
		if r.OtherModel != "" {
			names = append(names, r.OtherModel)
		}
		kinds, seeds := make([]string, 2), make([]string, len(names))
		for i, name := range names {
			parts := networkName.FindStringSubmatch(name)
			if parts == nil {
				return fmt.Errorf("the network %q has no kind and seed in its name", name)
			}
			kinds[i], seeds[i] = parts[1]+parts[3], parts[2]
		}
		k := group{kinds[0], kinds[1], r.Depth, r.Layer}
		if k.reference == k.other {
			slices.Sort(seeds)
		}
		if g[k] == nil {
			g[k] = pairs{}
		}
		unit := strings.Join(seeds, "+")
		if g[k][unit] == nil {
			g[k][unit] = &pair{networks: names}
		}
		g[k][unit].rows = append(g[k][unit].rows, r)
	}
	for k, of := range g {
		seen := map[string]bool{}
		for _, p := range of {
			for _, n := range p.networks {
				if seen[n] {
					return fmt.Errorf("network %s is in two pairs of %s and %s, so these are not independent", n, k.reference, k.other)
				}
				seen[n] = true
			}
		}
	}
	return nil
}

// sorted returns the groups in the order of their kinds in the tables, and then by depth.
func (g groups) sorted() []group {
	return slices.SortedFunc(maps.Keys(g), func(a, b group) int {
		return cmp.Or(cmp.Compare(rank(a.reference), rank(b.reference)), cmp.Compare(rank(a.other), rank(b.other)), cmp.Compare(a.depth, b.depth))
	})
}

// values returns the value of each pair, the mean of its scores, in the order of the seeds. If the
// column is of nulls, it is the mean of the values that chance gives.
func (p pairs) values(c column) []float64 {
	var out []float64
	for _, unit := range slices.Sorted(maps.Keys(p)) {
		var sum, n float64
		for _, r := range p[unit].rows {
			v := r.Value
			if c.Chance {
				v = r.Null
			}
			if r.Statistic == c.Statistic && r.Variant == c.Variant && !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			out = append(out, sum/n)
		}
	}
	return out
}

// rank returns the index of a kind in the tables, or -1.
func rank(kind string) int {
	return slices.IndexFunc(tables.Kinds, func(t [2]string) bool { return t[0] == kind })
}

// title returns the name of a kind in tables.
func title(kind string) string {
	if i := rank(kind); i >= 0 {
		return tables.Kinds[i][1]
	}
	return kind
}

// firstReLU holds the names of the first ReLU of the ResNets and of the VGGs of package train.
var firstReLU = []string{"Relu", "stage1/conv1/Relu"}

// layerTitle returns the name in tables of a layer of a ResNet or a VGG.
func layerTitle(layer string) string {
	stage, _, ok := strings.Cut(layer, "/")
	switch {
	case slices.Contains(firstReLU, layer):
		return "first ReLU"
	case strings.Contains(layer, "/block3/"): // ResNet-34, whose stages have three to six blocks
		return strings.Replace(stage, "stage", "stage ", 1) + ", block 3"
	case ok:
		return "end of " + strings.Replace(stage, "stage", "stage ", 1)
	}
	return "penultimate"
}
