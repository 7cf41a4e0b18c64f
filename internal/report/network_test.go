package report

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestNetworks checks which models have a graph to draw, and the names of the graph's groups of
// operations.
func TestNetworks(t *testing.T) {
	t.Parallel()
	op := func(tensor, op string, group int, reads ...int) scores.OperationRecord {
		return scores.OperationRecord{Tensor: tensor, Op: op, Group: group, Reads: reads}
	}
	graph := []scores.OperationRecord{
		op("/conv1/Conv_output_0", "Conv", 0), op("/relu/Relu_output_0", "Relu", 0, 0),
		op("/layer1/layer1.0/conv1/Conv_output_0", "Conv", 1, 1), op("/layer1/layer1.0/Add_output_0", "Add", 1, 1, 2),
		op("/Flatten_output_0", "Flatten", 2, 3), op("logits", "Gemm", 3, 4),
	}
	rows := []scores.Row{{Model: "a", Layer: "/relu/Relu_output_0"}, {Model: "b", Layer: "x"}, {Model: "c"}, {Model: "e", Layer: "logits", OtherModel: "a"}}
	unordered := slices.Clone(graph)
	unordered[2].Reads = []int{4} // a later operation
	got := Networks(rows, []scores.ModelRecord{{Name: "a", Graph: graph}, {Name: "b", Graph: unordered}, {Name: "c", Graph: graph}, {Name: "d"}, {Name: "e", Graph: graph}})
	if len(got) != 1 || got[0].Model != "a" {
		t.Fatalf("networks %+v, want that of a: the graph of b is not in order, c has no scores of layers, d has no graph, e has only those of two models", got)
	}
	if want := []string{"conv1", "layer1.0", "Flatten", "Gemm"}; !slices.Equal(got[0].Groups, want) {
		t.Errorf("groups %q, want %q", got[0].Groups, want)
	}
}
