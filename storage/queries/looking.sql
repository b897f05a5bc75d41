-- name: campaign_settings
-- The settings that a campaign's file was last accepted with.
select settings from campaign where id = $campaign;
