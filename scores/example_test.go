package scores_test

import (
	"os"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Rotations by two angles yield three rows: one for each angle, and the mean, whose parameter is
// empty. Plain returns a score without interval and null.
func ExampleTable() {
	var cells []scores.Cell
	for i, angle := range []string{"90", "180"} {
		cells = append(cells, scores.Cell{
			Model: "resnet20", Data: "cifar10", Transform: "quarter", Parameter: angle, Measure: "effective-invariance",
			Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: []measure.Score{measure.Plain("ei", 0.25+0.25*float64(i), 10000)}}},
		})
	}
	if err := scores.WriteCSV(os.Stdout, scores.Table("turns", cells)); err != nil {
		panic(err)
	}
	// Output:
	// study,model,layer,depth,other_model,other_layer,data,transform,parameter,trial,measure,variant,factor,statistic,value,low,high,null,n,warning,p,p_adjusted
	// turns,resnet20,,,,,cifar10,quarter,90,0,effective-invariance,,,ei,0.25,,,,10000,,,
	// turns,resnet20,,,,,cifar10,quarter,180,0,effective-invariance,,,ei,0.5,,,,10000,,,
	// turns,resnet20,,,,,cifar10,quarter,,0,effective-invariance,,,ei,0.375,,,,10000,,,
}
