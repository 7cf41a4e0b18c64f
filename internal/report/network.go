package report

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A Network is the graph of a model for a drawing.
type Network struct {
	Model      string
	Operations []scores.OperationRecord
	Groups     []string // names of the groups of operations (OperationRecord.Group), drawn as one node each
}

// Networks returns the graphs of models that have scores of layers of their own, without those whose references
// between operations are invalid, as in an edited record.
func Networks(rows []scores.Row, models []scores.ModelRecord) []Network {
	measured := map[string]bool{}
	for i := range rows {
		measured[rows[i].Model] = measured[rows[i].Model] || rows[i].Layer != "" && rows[i].OtherModel == ""
	}
	var out []Network
	for _, m := range models {
		if len(m.Graph) > 0 && measured[m.Name] && isOrdered(m.Graph) {
			out = append(out, Network{m.Name, m.Graph, groupNames(m.Graph)})
		}
	}
	return out
}

// isOrdered reports whether each operation reads only earlier operations, of its own group or of
// groups with smaller numbers.
func isOrdered(all []scores.OperationRecord) bool {
	for i, o := range all {
		if o.Group < 0 || o.Group > i || slices.ContainsFunc(o.Reads, func(from int) bool { return from < 0 || from >= i || all[from].Group > o.Group }) {
			return false
		}
	}
	return true
}

// groupNames returns a name for each group: the innermost module that all its tensors share, such
// as "layer2.1", or the innermost two, such as "stage1/conv2", if several groups have the same
// name. A group whose tensors share no module has the name of the module, or else the operator, of
// its first operation with weights.
func groupNames(all []scores.OperationRecord) []string {
	var groups [][]scores.OperationRecord
	for _, o := range all {
		for len(groups) <= o.Group {
			groups = append(groups, nil)
		}
		groups[o.Group] = append(groups[o.Group], o)
	}
	names, longer := make([]string, len(groups)), make([]string, len(groups))
	for i, group := range groups {
		if len(group) == 0 {
			continue
		}
		common := modulesOf(group[0].Tensor)
		for _, o := range group[1:] {
			m := modulesOf(o.Tensor)
			n := 0
			for n < len(m) && n < len(common) && m[n] == common[n] {
				n++
			}
			common = common[:n]
		}
		main := group[max(0, slices.IndexFunc(group, func(o scores.OperationRecord) bool { return weighted[o.Op] }))]
		if len(common) == 0 {
			common = modulesOf(main.Tensor)
		}
		if names[i] = main.Op; len(common) > 0 {
			names[i], longer[i] = common[len(common)-1], strings.Join(common[max(0, len(common)-2):], "/")
		}
	}
	seen := map[string]int{}
	for _, name := range names {
		seen[name]++
	}
	for i, name := range names {
		if seen[name] > 1 && longer[i] != "" {
			names[i] = longer[i]
		}
	}
	return names
}

// modulesOf returns the modules in the name of a tensor that PyTorch exported, the outermost first:
// layer1, layer1.0 and conv1 for "/layer1/layer1.0/conv1/Conv_output_0".
func modulesOf(tensor string) []string {
	parts := strings.Split(strings.Trim(tensor, "/"), "/")
	return parts[:len(parts)-1]
}

// weighted are the operators that usually have weights.
var weighted = map[string]bool{"Conv": true, "ConvTranspose": true, "Gemm": true, "MatMul": true, "Einsum": true, "QLinearConv": true, "QLinearMatMul": true,
	"MatMulInteger": true, "ConvInteger": true, "LSTM": true, "GRU": true, "RNN": true}
