// The API, drawn from /openapi.json.
import { $, make } from './api.js'

const contract = await (await fetch('/openapi.json')).json()

function schemaName(schema) {
  if (!schema) return ''
  if (schema.$ref) return schema.$ref.split('/').pop()
  if (schema.anyOf) return schema.anyOf.map(schemaName).join(' or ')
  if (schema.type === 'array') return `list of ${schemaName(schema.items)}`
  return schema.const !== undefined ? JSON.stringify(schema.const) : schema.enum ? schema.enum.join(' | ') : schema.type ?? 'anything'
}

function link(name) {
  return contract.components.schemas[name] ? make('a', { href: `#${name}` }, name) : make('span', {}, name)
}

function operation(path, method, entry) {
  const box = make('section', { class: 'operation' },
    make('h3', {}, make('code', {}, `${method.toUpperCase()} ${path}`)), make('p', {}, entry.description ?? entry.summary))
  const body = Object.values(entry.requestBody?.content ?? {})[0]
  if (body) box.append(make('p', {}, 'Request body: ', link(schemaName(body.schema))))
  const answers = make('p', {}, 'Responses: ')
  for (const [code, answer] of Object.entries(entry.responses)) {
    const schema = Object.values(answer.content ?? {})[0]?.schema
    answers.append(make('code', {}, code), ' ', schema ? link(schemaName(schema)) : '', '  ')
  }
  box.append(answers)
  return box
}

function schema(name, entry) {
  const rows = Object.entries(entry.properties ?? {}).map(([field, part]) => make('tr', {},
    make('td', {}, make('code', {}, field), entry.required?.includes(field) ? ' *' : ''),
    make('td', {}, schemaName(part)), make('td', {}, part.description ?? '')))
  const head = make('h3', { id: name }, name)
  const table = make('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': `Fields of ${name}` }, make('table', {}, make('tbody', {}, ...rows)))
  return make('section', { class: 'operation' }, head, make('p', {}, entry.description ?? ''), rows.length ? table : null)
}

$('#about').textContent = contract.info.description
for (const [path, methods] of Object.entries(contract.paths)) {
  for (const [method, entry] of Object.entries(methods)) $('#operations').append(operation(path, method, entry))
}
for (const [name, entry] of Object.entries(contract.components.schemas)) $('#schemas').append(schema(name, entry))
$('#operations').removeAttribute('aria-busy')
