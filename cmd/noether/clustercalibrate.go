package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/study"
)

// clusterCalibrateCommand returns the hidden command that noether cluster submit runs for each
// model. It prints the model's cost as JSON: its times in seconds and its peak memory.
func clusterCalibrateCommand(engine *engineFlags) *cobra.Command {
	var vars []string
	var model, memory string
	var most time.Duration
	c := &cobra.Command{
		Use:    "calibrate STUDY",
		Short:  "Measure the cost of a model of a study on a few samples",
		Hidden: true,
		Args:   usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := loadStudy(c, args[0], vars, memory)
			if err != nil {
				return err
			}
			o, err := engine.open()
			if err != nil {
				return err
			}
			o.Only = []string{model}
			plan, err := study.NewPlan(c.Context(), s, o)
			if err != nil {
				return err
			}
			work, err := study.Remaining(plan, "", o) // "": no run folder, so all work of the model
			plan.Close()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), most)
			defer cancel()
			cost, err := cluster.Calibrate(ctx, s, work[0], o)
			if err != nil {
				return err
			}
			return printJSON(cost)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&vars, "var", nil, "NAME=VALUE for ${NAME} in the study")
	f.StringVar(&model, "model", "", "name of the model")
	f.StringVar(&memory, "memory", "", "memory for the running sums of measures")
	f.DurationVar(&most, "for", 20*time.Second, "largest duration of the measurement")
	return c
}
