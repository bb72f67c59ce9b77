// Reads each of the given files as a dashboard of Grafana. A field that Grafana does not know, a value of another type
// than it expects, and a panel or a query of an unknown kind are errors.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/gauge"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Fields of these objects may be left out, because Grafana has a default for each.
var hasDefaults = regexp.MustCompile(`\.(options|custom|current)\.`)

// The module has no fields of these kinds of panels, so that their options are not checked.
var unchecked = map[string]bool{"alertlist": true}

func register() {
	runtime := cog.NewRuntime()
	for _, kind := range []variants.PanelcfgConfig{
		gauge.VariantConfig(), stat.VariantConfig(), table.VariantConfig(), timeseries.VariantConfig(),
	} {
		runtime.RegisterPanelcfgVariant(kind)
	}
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
}

// checkPanel returns what is wrong with a panel whose fields are known.
func checkPanel(panel *dashboard.Panel) (wrong []string) {
	if _, known := cog.ConfigForPanelcfgVariant(panel.Type); !known && !unchecked[panel.Type] {
		wrong = append(wrong, fmt.Sprintf("type: expected a kind that main.go registers, found %q", panel.Type))
	}
	for i, target := range panel.Targets {
		if _, unknown := target.(variants.UnknownDataquery); unknown {
			wrong = append(wrong, fmt.Sprintf("targets[%d].datasource.type: expected prometheus", i))
		}
	}
	return wrong
}

// check returns what is wrong with the file, one complaint in each element.
func check(path string) (wrong []string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{err.Error()}
	}
	var found cog.BuildErrors
	err = new(dashboard.Dashboard).UnmarshalJSONStrict(text)
	if err != nil && !errors.As(err, &found) {
		return []string{err.Error()}
	}
	for _, one := range found {
		missing := strings.Contains(one.Message, "required field is missing")
		if !missing || !hasDefaults.MatchString(one.Path) {
			wrong = append(wrong, one.Error())
		}
	}
	var board dashboard.Dashboard // a strict reading leaves out what is wrong
	if err := json.Unmarshal(text, &board); err != nil {
		return wrong
	}
	for i, panel := range board.Panels {
		if panel.Panel == nil {
			continue // a row
		}
		for _, one := range checkPanel(panel.Panel) {
			wrong = append(wrong, fmt.Sprintf("panels[%d].%s", i, one))
		}
	}
	return wrong
}

func main() {
	register()
	failed := false
	for _, path := range os.Args[1:] {
		for _, one := range check(path) {
			fmt.Fprintf(os.Stderr, "%s: %s\n", path, one)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
