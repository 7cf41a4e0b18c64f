package docs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/noether-ml/noether/cluster"
	"github.com/noether-ml/noether/internal/config"
)

// Every key of a profile is documented, every example of one is read, and every state of a task is told.
func TestClusters(t *testing.T) {
	t.Parallel()
	text := page(t, "guides/cluster.md")
	schema := config.Schema(reflect.TypeFor[cluster.Profile]())
	n := 0
	for key := range keys(schema["properties"].(map[string]any)) {
		n++
		if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, "\n  "+key+": ") {
			t.Errorf("the key %s of profiles is not documented", key)
		}
	}
	if n < 20 {
		t.Errorf("the schema has %d keys; were they found?", n)
	}
	examples := yamlBlock.FindAllStringSubmatch(text, -1)
	if len(examples) < 2 {
		t.Errorf("%d examples were found", len(examples))
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
