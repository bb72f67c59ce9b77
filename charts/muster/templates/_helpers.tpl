{{- define "muster.name" -}}
{{- if contains "muster" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-muster{{ end }}
{{- end }}

{{- define "muster.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "muster.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* image: {repository, tag, digest}, chart: .Chart */}}
{{- define "muster.image" -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .chart.AppVersion }}{{ end }}
{{- end }}

{{- /* Who may ask replicas for their metrics and progress, as NetworkPolicyPeers in JSON. */}}
{{- define "muster.httpPeers" -}}
{{- $name := "kubernetes.io/metadata.name" }}
{{- $own := dict "namespaceSelector" (dict "matchLabels" (dict $name .Release.Namespace)) }}
{{- $_ := set $own "podSelector" (dict "matchLabels" (include "muster.selector" . | fromYaml)) }}
{{- $peers := list $own }}
{{- range .Values.security.networkPolicy.monitoringNamespaces }}
{{- $peers = append $peers (dict "namespaceSelector" (dict "matchLabels" (dict $name .))) }}
{{- end }}
{{- toJson $peers }}
{{- end }}

{{- /* What the operator does in the namespaces of jobs. */}}
{{- define "muster.rules" -}}
- apiGroups: [muster.dev]
  resources: [trainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [muster.dev]
  resources: [trainingjobs/status]
  verbs: [update]
- apiGroups: [muster.dev]
  resources: [trainingjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create{{ if .Values.tfjob.enabled }}, patch{{ end }}]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- if .Values.tfjob.enabled }}
- apiGroups: [muster.dev]
  resources: [trainingjobs]
  verbs: [create, update]
- apiGroups: [kubeflow.org]
  resources: [tfjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/status]
  verbs: [update]
{{- end }}
{{- if .Values.kueue.enabled }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [update]
{{- end }}
{{- if .Values.security.networkPolicy.enabled }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch]
{{- end }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch]
- apiGroups: [scheduling.volcano.sh, scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
{{- /* Whether one answers whose pods do not end. */}}
{{- if not .Values.watchNamespaces }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- /* Of which version it is. */}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [trainingjobs.muster.dev]
  verbs: [get]
{{- end }}
{{- end }}

{{- /* The definition of TFJobs, where this release has one. Helm deletes what the release had before and has no more, and
all TFJobs with it, unless the object in the cluster says "keep". So a definition that somebody else has put in place of
ours, without that word or with a content of its own, stays in the release as it is in the cluster. */}}
{{- define "muster.tfjobsCrd" -}}
{{- $ours := .Files.Get "files/tfjobs.yaml" | fromYaml }}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $ours.metadata.name }}
{{- $annotations := dig "metadata" "annotations" dict $there }}
{{- $released := and (eq (dig "meta.helm.sh/release-name" "" $annotations) .Release.Name) (eq (dig "meta.helm.sh/release-namespace" "" $annotations) .Release.Namespace) }}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (include "muster.name" .) }}
{{- $had := or $released (eq (dig "metadata" "annotations" "muster.dev/tfjobs-crd" "" $deployment) "released") }}
{{- $wanted := and .Values.tfjob.enabled .Values.tfjob.crd }}
{{- $version := first (dig "spec" "versions" list $there) | default dict }}
{{- $isOurs := contains "Muster" (dig "schema" "openAPIV3Schema" "description" "" $version) }}
{{- $kept := eq (dig "helm.sh/resource-policy" "" $annotations) "keep" }}
{{- $keep := dict "helm.sh/resource-policy" "keep" }}
{{- if and $wanted (or (not $there) (and $had $isOurs)) }}
{{- $_ := set $ours.metadata "labels" (include "muster.labels" . | fromYaml) }}
{{- $_ := set $ours.metadata "annotations" $keep }}
{{- toYaml $ours }}
{{- else if and $there $had (or $wanted (not $kept)) }}
{{- $metadata := dict "name" $there.metadata.name "labels" (dig "metadata" "labels" dict $there) "annotations" $keep }}
{{- dict "apiVersion" $there.apiVersion "kind" $there.kind "metadata" $metadata "spec" $there.spec | toYaml }}
{{- end }}
{{- end }}
