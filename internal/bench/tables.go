//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

var (
	//go:embed tables.yaml
	tablesText string
	//go:embed networks.txt
	networkList string
)

// readTables returns the tables of tables.yaml.
func readTables() ([]table, error) {
	t, err := template.New("").Funcs(template.FuncMap{"rows": rows, "words": strings.Fields, "networks": networks}).Parse(tablesText)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := t.Execute(&text, nil); err != nil {
		return nil, err
	}
	var all []table
	if err := yaml.UnmarshalStrict([]byte(text.String()), &all); err != nil {
		return nil, fmt.Errorf("tables.yaml: %w", err)
	}
	for i := range all {
		for k := range all[i].Rows {
			if err := all[i].Rows[k].findSources(); err != nil {
				return nil, fmt.Errorf("table %s: %w", all[i].Name, err)
			}
		}
	}
	return all, nil
}

// findSources sets the source of each cell. Cells that run the same have one.
func (r *row) findSources() error {
	known := map[string]*source{}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Run == nil {
			c.Run = r.Run
		}
		key := strings.Join(c.Run, "\x00")
		if known[key] == nil {
			run, err := sourceOf(c.Run)
			if err != nil {
				return fmt.Errorf("%v: %s: %w", r.Text, c.Column, err)
			}
			known[key] = &source{r.prepared(run)}
		}
		c.from = known[key]
	}
	return nil
}

// rows returns the cells of the lines of a text, which "|" separates. In them ~ stands for `.
func rows(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(strings.ReplaceAll(strings.TrimSpace(text), "~", "`")) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out
}

// A network is a line of networks.txt.
type network struct{ Net, Side, Batch, Class, Layers, Title, Outputs string }

func networks() []network {
	var out []network
	for line := range strings.Lines(networkList) {
		f := strings.Fields(line)
		title, outputs, _ := strings.Cut(strings.Join(f[5:], " "), ", ")
		out = append(out, network{f[0], f[1], f[2], f[3], f[4], title, outputs})
	}
	return out
}
