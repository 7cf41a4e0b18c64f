package similarity

// A miniGrid adds up HSIC over minibatches for all pairs of a grid: numbers for each unit and each pair, by group.
type miniGrid struct {
	n      []int       // samples, of each group
	self   [][]float64 // weighted HSIC of each unit with itself, of each group
	across [][]float64 // of each pair, of each group
}

func newMiniGrid(units, pairs, groups int) *miniGrid {
	m := &miniGrid{n: make([]int, groups)}
	for range units {
		m.self = append(m.self, make([]float64, groups))
	}
	for range pairs {
		m.across = append(m.across, make([]float64, groups))
	}
	return m
}

// add adds a minibatch, which counts as much as it has samples.
func (m *miniGrid) add(group int, grams []batchGram, ends func(pair int) (u, v int)) {
	samples := grams[0].m
	m.n[group] += samples
	for u, g := range grams {
		m.self[u][group] += float64(samples) * g.hsic(g)
	}
	for i := range m.across {
		u, v := ends(i)
		m.across[i][group] += float64(samples) * grams[u].hsic(grams[v])
	}
}

func (m *miniGrid) merge(o *miniGrid) {
	for g := range m.n {
		m.n[g] += o.n[g]
	}
	for u := range m.self {
		for g := range m.self[u] {
			m.self[u][g] += o.self[u][g]
		}
	}
	for i := range m.across {
		for g := range m.across[i] {
			m.across[i][g] += o.across[i][g]
		}
	}
}

// estimate is minibatch CKA of a pair of units.
func (m *miniGrid) estimate(pair, u, v int) estimate {
	groups := make([]batchSum, len(m.n))
	for g := range groups {
		groups[g] = batchSum{m.n[g], m.across[pair][g], m.self[u][g], m.self[v][g]}
	}
	return minibatchCKA(groups)
}
