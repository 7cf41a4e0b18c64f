package html

import (
	"fmt"

	"github.com/noether-ml/noether/scores"
)

// A stageRow is a stage of the run, with its time in seconds and its share in percent.
type stageRow struct{ Name, Seconds, Share string }

// stageRows returns a row for each stage of a run, and one for the whole run.
func stageRows(used *scores.Resources) []stageRow {
	share := func(seconds float64) string {
		if used.Seconds <= 0 {
			return ""
		}
		return fmt.Sprintf("%.0f %%", 100*seconds/used.Seconds)
	}
	var out []stageRow
	for _, s := range used.Stages {
		out = append(out, stageRow{s.Name, fmt.Sprintf("%.2f", s.Seconds), share(s.Seconds)})
	}
	return append(out, stageRow{"the whole run", fmt.Sprintf("%.2f", used.Seconds), ""})
}
