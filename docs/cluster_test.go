package docs

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/config"
)

// TestClusters checks that the guide documents every key of a profile (a cluster's settings) and
// every state of a task (a part of a study that runs as one job of the cluster), and that its
// example profiles can be read. page returns the text of a file of this folder.
func TestClusters(t *testing.T) {
	t.Parallel()
	text := page(t, "guides/cluster.md")
	schema := config.Schema(reflect.TypeFor[cluster.Profile]())
	count := 0
	for key := range keys(schema["properties"].(map[string]any)) {
		count++
		if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, "\n  "+key+": ") {
			t.Errorf("the key %s of profiles is not documented", key)
		}
	}
	if count < 20 {
		t.Errorf("%d keys were found in the schema, want 20 or more", count)
	}
	examples := yamlBlock.FindAllStringSubmatch(text, -1)
	if len(examples) < 2 {
		t.Errorf("%d examples were found, want 2 or more", len(examples))
	}
	for _, m := range examples {
		if _, err := cluster.ParseProfile("guides/cluster.md", []byte(m[1])); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
	}
	for _, state := range []string{cluster.Queued, cluster.Running, cluster.Done, cluster.Failed, cluster.Stopped, cluster.Killed, cluster.Lost, cluster.Cancelled, cluster.Unknown} {
		if !strings.Contains(text, state) {
			t.Errorf("the state %s is not documented", state)
		}
	}
}

// TestCostModel computes the cost of a large study from the measurement of one task in
// internal/bench/results/shards.json, and checks that the table in the guide has these rows.
func TestCostModel(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../internal/bench/results/shards.json")
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Rows []map[string]struct{ Text, Value string }
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	text := page(t, "guides/cluster.md")
	for _, row := range stored.Rows {
		network := row["one task on one core"].Text
		pass, err := strconv.ParseFloat(row["processor time of a forward pass"].Value, 64) // milliseconds
		if err != nil {
			t.Fatal(err)
		}
		if measured := fmt.Sprintf("%.3g ms for", pass); !strings.Contains(text, measured) {
			t.Errorf("the guide lacks %q of %s", measured, network)
		}
		for _, size := range [][2]int{{10, 150}, {100, 300}, {1000, 900}} {
			cores, tasks := size[0], size[1]
			// Models x images x (the image and 20 transformations of it).
			const passes = 150 * 50_000 * (1 + 20)
			task := passes * pass / 1000 / float64(tasks) // seconds
			total := task * math.Ceil(float64(tasks)/float64(cores))
			line := fmt.Sprintf("| %s | %d | %d | %s | %s |\n", network, cores, tasks, roundTime(task), roundTime(total))
			if !strings.Contains(text, line) {
				t.Errorf("the guide lacks %s", line)
			}
		}
	}
}

// roundTime writes a number of seconds in days or hours, if there are two or more, or in minutes. A
// number below 10 of days or hours has one decimal, others none.
func roundTime(seconds float64) string {
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"days", 86400}, {"h", 3600}} {
		if v := seconds / unit.seconds; v >= 2 {
			digits := 1
			if v >= 10 {
				digits = 0
			}
			return fmt.Sprintf("%.*f %s", digits, v, unit.name)
		}
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}
