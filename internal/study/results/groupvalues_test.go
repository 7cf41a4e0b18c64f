package results

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestMeansOverValuesDoNotDependOnOrder checks that means over the values of a parameter are the same
// to the bit each time, whatever the order in which a map has the values.
func TestMeansOverValuesDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	values := subjectValues{}
	key := [2]string{"", "ei"}
	values[key] = map[cellValue]map[int]float64{}
	for i := range 20 {
		values[key][cellValue{fmt.Sprint(i), 0}] = map[int]float64{7: 1 / float64(3+i*i)}
	}
	var want float64
	for i := range 100 {
		got := values.of(scores.Cell{Measure: "effective-invariance", Trial: scores.MeanOverTrials}, "", "ei")[7]
		if i == 0 {
			want = got
		}
		if got != want {
			t.Fatalf("the mean is %v, and %v before", got, want)
		}
	}
}
